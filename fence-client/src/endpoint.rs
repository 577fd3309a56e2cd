use std::fmt;

use thiserror::Error;

/// Port of a server that names none.
const PORT_DEFAULT: u16 = 7_420;
/// Endpoints in one list at the most: more members than any cluster has.
const ENDPOINTS_MAX: usize = 64;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Endpoint {
    /// Reads a list, separated by commas.
    pub(crate) fn parse_list(text: &str) -> Result<Vec<Self>, InvalidEndpoint> {
        let endpoints: Vec<_> = text
            .split(',')
            .map(|part| Self::parse(part.trim()))
            .collect::<Result<_, _>>()?;
        if endpoints.len() > ENDPOINTS_MAX {
            return Err(InvalidEndpoint::new(text, "there are more than 64"));
        }
        Ok(endpoints)
    }

    fn parse(text: &str) -> Result<Self, InvalidEndpoint> {
        let invalid = |problem| InvalidEndpoint::new(text, problem);
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => match rest.split_once(']') {
                Some((host, "")) => (host, None),
                Some((host, port)) => (
                    host,
                    Some(
                        port.strip_prefix(':')
                            .ok_or_else(|| invalid("':' must follow ']'"))?,
                    ),
                ),
                None => return Err(invalid("']' is missing")),
            },
            None => match text.split_once(':') {
                Some((_, port)) if port.contains(':') => {
                    return Err(invalid("an IPv6 address needs brackets, as in [::1]:7420"));
                }
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            },
        };
        if host.is_empty() || host.contains(char::is_whitespace) {
            return Err(invalid("the host is missing, or has a space in it"));
        }
        let port = match port {
            None => PORT_DEFAULT,
            Some(port) => port
                .parse()
                .ok()
                .filter(|port| *port > 0)
                .ok_or_else(|| invalid("the port must be 1 to 65535"))?,
        };
        Ok(Self {
            host: host.to_owned(),
            port,
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// A text that is no address of a server.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{text}' is no endpoint: {problem}; write HOST:PORT, several with commas between them")]
#[non_exhaustive]
pub struct InvalidEndpoint {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl InvalidEndpoint {
    fn new(text: &str, problem: &'static str) -> Self {
        Self {
            text: text.to_owned(),
            problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_with_names_addresses_and_default_ports() {
        let list = Endpoint::parse_list("127.0.0.1:7420, lease-2 ,[::1]:7430,[fe80::1]").unwrap();
        let shown: Vec<_> = list.iter().map(Endpoint::to_string).collect();
        assert_eq!(
            shown,
            ["127.0.0.1:7420", "lease-2:7420", "[::1]:7430", "[fe80::1]:7420"]
        );
    }

    #[test]
    fn what_is_no_endpoint_is_refused_with_the_reason() {
        for text in [
            "",
            ",",
            "a,",
            ":7420",
            "host:",
            "host:0",
            "host:70000",
            "::1",
            "[::1",
            "[::1]7420",
            "a b:1",
        ] {
            assert!(Endpoint::parse_list(text).is_err(), "{text:?}");
        }
        let many = vec!["a:1"; ENDPOINTS_MAX + 1].join(",");
        assert!(Endpoint::parse_list(&many).is_err());
    }
}
