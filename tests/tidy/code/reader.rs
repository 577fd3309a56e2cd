//! From tokens to [`Code`]: one walk over the token trees of a file.

use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};

use super::{Attribute, Code, CodePath, Function, Role};

/// Where in the file a group of tokens stands.
#[derive(Debug, Clone, Default)]
struct Surroundings {
    /// Inside a `use` item: the path before its group, empty outside of one.
    import: Option<Vec<String>>,
    in_test: bool,
    function: Option<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Reader {
    code: Code,
}

impl Reader {
    /// Reads a whole file.
    pub(super) fn read(stream: TokenStream) -> Code {
        let mut reader = Self::default();
        reader.walk(stream, &Surroundings::default());
        reader.code
    }

    fn walk(&mut self, stream: TokenStream, around: &Surroundings) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        // Attributes and function head of the item that is being read.
        let mut attributes: Vec<String> = Vec::new();
        let mut here = around.clone();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            match token {
                TokenTree::Punct(mark) if mark.as_char() == '#' => {
                    at += usize::from(is_mark(tokens.get(at + 1), '!'));
                    if let Some(TokenTree::Group(body)) = tokens.get(at + 1) {
                        attributes.push(self.attribute(body));
                        here.in_test |= attributes.last().is_some_and(|text| is_for_tests(text));
                    }
                }
                TokenTree::Punct(mark) if mark.as_char() == ';' => {
                    attributes.clear();
                    here = around.clone();
                }
                TokenTree::Group(group) => {
                    self.walk(group.stream(), &here);
                    if group.delimiter() == Delimiter::Brace {
                        attributes.clear();
                        here = around.clone();
                    }
                }
                TokenTree::Ident(word) if word == "use" => here.import = Some(Vec::new()),
                TokenTree::Ident(word) if word == "fn" => {
                    if let Some(TokenTree::Ident(name)) = tokens.get(at + 1) {
                        here.function = Some(self.code.functions.len());
                        self.code.functions.push(Function {
                            name: name.to_string(),
                            line: name.span().start().line,
                            attributes: attributes.clone(),
                        });
                        at += 1;
                    }
                }
                TokenTree::Ident(_) => {
                    at = self.path(&tokens, at, &here);
                    continue;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            at += 1;
        }
    }

    /// Reads the path that starts at `at`; answers where to go on.
    fn path(&mut self, tokens: &[TokenTree], mut at: usize, around: &Surroundings) -> usize {
        let mut segments = around.import.clone().unwrap_or_default();
        let line = tokens.get(at).map_or(0, |token| token.span().start().line);
        loop {
            match tokens.get(at) {
                Some(TokenTree::Ident(name)) => segments.push(name.to_string()),
                Some(TokenTree::Punct(mark)) if mark.as_char() == '*' => segments.push("*".to_owned()),
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                    let inside = Surroundings {
                        import: Some(segments),
                        ..around.clone()
                    };
                    self.walk(group.stream(), &inside);
                    return at + 1;
                }
                _ => break,
            }
            at += 1;
            if !is_separator(tokens, at) || is_mark(tokens.get(at + 2), '<') {
                break;
            }
            at += 2;
        }
        let role = match around.import {
            Some(_) => Role::Import,
            None => role(tokens, at),
        };
        self.code.paths.push(CodePath {
            segments,
            line,
            role,
            in_test: around.in_test,
            function: around.function,
        });
        at
    }

    fn attribute(&mut self, body: &Group) -> String {
        let text: String = body.stream().to_string().split_whitespace().collect();
        self.code.attributes.push(Attribute {
            text: text.clone(),
            line: body.span_open().start().line,
        });
        text
    }
}

fn is_mark(token: Option<&TokenTree>, mark: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == mark)
}

/// Whether `::` stands at `at`.
fn is_separator(tokens: &[TokenTree], at: usize) -> bool {
    let joined = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.spacing() == Spacing::Joint);
    is_mark(tokens.get(at), ':') && tokens.get(at).is_some_and(joined) && is_mark(tokens.get(at + 1), ':')
}

fn is_for_tests(attribute: &str) -> bool {
    let name = attribute.split('(').next().unwrap_or_default();
    attribute == "cfg(test)"
        || attribute.starts_with("cfg(all(test,")
        || name == "test"
        || name.ends_with("::test")
}

/// What follows a path that ended before `at`: a call looks past its `::<..>`.
fn role(tokens: &[TokenTree], mut at: usize) -> Role {
    if is_mark(tokens.get(at), '!') && !is_mark(tokens.get(at + 1), '=') {
        return Role::Macro;
    }
    if is_separator(tokens, at) {
        at = after_generics(tokens, at + 2);
    }
    match tokens.get(at) {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => {
            match group.stream().is_empty() {
                true => Role::CallWithoutArguments,
                false => Role::Call,
            }
        }
        _ => Role::Mention,
    }
}

/// `at` is the `<`; answers the place after its `>`.
fn after_generics(tokens: &[TokenTree], mut at: usize) -> usize {
    let mut open = 0_usize;
    while let Some(token) = tokens.get(at) {
        open += usize::from(is_mark(Some(token), '<'));
        open -= usize::from(open > 0 && is_mark(Some(token), '>'));
        at += 1;
        if open == 0 {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let code = Code::read("sample.rs", text);
        code.paths.iter().map(CodePath::text).collect()
    }

    #[test]
    fn use_groups_are_spelt_out() {
        assert_eq!(
            paths("use a::{b, c::{d, self}, *}; use ::e as f;"),
            ["a::b", "a::c::d", "a::c::self", "e", "as", "f"]
        );
    }

    #[test]
    fn comments_and_strings_say_nothing() {
        let said = paths("/// a::b\n// c::d\nconst X: &str = \"e::f\";");
        assert_eq!(said, ["doc", "const", "X", "str"]);
    }

    #[test]
    fn a_path_over_two_lines_is_one_path() {
        let code = Code::read("sample.rs", "fn f() {\n    a::\n        b(1)\n}");
        let path = code.paths.first().unwrap();
        assert_eq!(
            (path.text().as_str(), path.line, path.role),
            ("a::b", 2, Role::Call)
        );
    }

    #[test]
    fn a_call_without_arguments_is_told_from_one_with() {
        let code = Code::read(
            "sample.rs",
            "fn f() { a::b::<Vec<u8>>(); a::b(1); a::b!(); a::b; }",
        );
        let of_b = |path: &&CodePath| path.ends_with(&["b"]);
        let roles: Vec<_> = code.paths.iter().filter(of_b).map(|path| path.role).collect();
        assert_eq!(
            roles,
            [Role::CallWithoutArguments, Role::Call, Role::Macro, Role::Mention]
        );
    }

    #[test]
    fn functions_know_their_attributes_also_inside_a_macro() {
        let code = Code::read(
            "sample.rs",
            "proptest! { #[test] fn a(x in 0..9) { y::z(); } }\n#[tokio::test(start_paused = true)] async fn b() {}\nfn c() {}",
        );
        let told: Vec<_> = code
            .functions
            .iter()
            .map(|f| (f.name.as_str(), f.is_test()))
            .collect();
        assert_eq!(told, [("a", true), ("b", true), ("c", false)]);
        assert_eq!(
            code.functions.get(1).unwrap().attributes,
            ["tokio::test(start_paused=true)"]
        );
        let call = code.paths.iter().find(|path| path.text() == "y::z").unwrap();
        assert_eq!((call.function, call.in_test), (Some(0), true));
    }

    #[test]
    fn what_stands_in_a_test_module_is_marked() {
        let code = Code::read(
            "sample.rs",
            "#[cfg(test)] mod tests { use a::b; } mod m { use c::d; }",
        );
        let marked = |name: &str| {
            code.paths
                .iter()
                .find(|path| path.text() == name)
                .unwrap()
                .in_test
        };
        assert!(marked("a::b") && !marked("c::d"));
    }
}
