//! The password that a listener asks for, as Redis's `requirepass`.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Longest password, in bytes: what a client may send before it is authenticated.
const PASSWORD_BYTES_MAX: usize = 1_024;

/// A password. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Password(Vec<u8>);

/// Why a password file cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PasswordError {
    /// The file cannot be read.
    #[error("cannot read the password file {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The file has no password, or one that is too long.
    #[error("the password file {} must hold one line of 1 to {PASSWORD_BYTES_MAX} bytes, it holds {len}", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Bytes found.
        len: usize,
    },
}

impl Password {
    /// The password in a file: all of it, but for one line end.
    pub(crate) fn from_file(path: &Path) -> Result<Self, PasswordError> {
        let mut bytes = std::fs::read(path).map_err(|source| PasswordError::Read {
            path: path.to_owned(),
            source,
        })?;
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
        if bytes.is_empty() || bytes.len() > PASSWORD_BYTES_MAX {
            return Err(PasswordError::Length {
                path: path.to_owned(),
                len: bytes.len(),
            });
        }
        Ok(Self(bytes))
    }

    /// Compares without telling by its time how much was right; the length is no secret.
    pub(crate) fn is(&self, shown: &[u8]) -> bool {
        let differs = self
            .0
            .iter()
            .zip(shown)
            .fold(0, |differs, (left, right)| differs | (left ^ right));
        shown.len() == self.0.len() && differs == 0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_the_files_one_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("password");
        std::fs::write(&path, "s3cret\r\n").unwrap();
        let password = Password::from_file(&path).unwrap();
        assert!(password.is(b"s3cret"));
        for wrong in [&b"s3cre"[..], b"s3crets", b"S3cret", b""] {
            assert!(!password.is(wrong));
        }
        assert_eq!(format!("{password:?}"), "Password(..)");
    }

    #[test]
    fn an_empty_or_missing_file_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("password");
        assert!(
            Password::from_file(&path)
                .unwrap_err()
                .to_string()
                .contains("cannot read")
        );
        std::fs::write(&path, "\n").unwrap();
        assert!(
            Password::from_file(&path)
                .unwrap_err()
                .to_string()
                .contains("must hold one line")
        );
    }
}
