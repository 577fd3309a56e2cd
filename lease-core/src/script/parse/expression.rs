//! Expressions.

use super::Parser;
use super::error::LoadError;
use super::lexer::Token;
use super::scope::{Found, Given};
use crate::limits::SCRIPT_DEPTH_MAX;
use crate::script::number::Arithmetic;
use crate::script::program::{Call, Callee, Entry, Expression, Library, Operator};
use crate::script::verb::Verb;
use crate::types::SharedBytes;

/// An expression, and how many levels it has: chains grow without nesting.
pub(super) struct Tree {
    pub(super) expression: Expression,
    height: usize,
}

/// What stands before a call or a field: a value, or a function, which is no value here.
enum Prefix {
    Value(Tree),
    Function(Function),
}

/// A function that can be called.
#[derive(Clone, Copy)]
enum Function {
    Own(Callee),
    Given(Given),
}

/// How tightly an operator binds on its left and right.
struct Binding {
    left: u8,
    right: u8,
}

/// Unary operators bind tighter than all others that are served.
const UNARY: u8 = 8;

#[derive(Clone, Copy)]
enum Joint {
    And,
    Or,
    Operator(Operator),
}

impl Tree {
    const fn leaf(expression: Expression) -> Self {
        Self {
            expression,
            height: 1,
        }
    }
}

impl Parser {
    pub(super) fn expression(&mut self) -> Result<Tree, LoadError> {
        self.joined(0)
    }

    /// Values behind one another.
    pub(super) fn expressions(&mut self) -> Result<Vec<Tree>, LoadError> {
        let mut list = vec![self.expression()?];
        while self.take(",") {
            list.push(self.expression()?);
        }
        Ok(list)
    }

    /// Operands joined by operators that bind tighter than `above`.
    fn joined(&mut self, above: u8) -> Result<Tree, LoadError> {
        let mut left = self.nested(Self::operand)?;
        while let Some((joint, binding)) = self.joint()?
            && binding.left > above
        {
            self.skip();
            let right = self.nested(|parser| parser.joined(binding.right))?;
            let height = self.above(&[&left, &right])?;
            let pair = Box::new([left.expression, right.expression]);
            let expression = match joint {
                Joint::And => Expression::And(pair),
                Joint::Or => Expression::Or(pair),
                Joint::Operator(operator) => Expression::Join(operator, pair),
            };
            left = Tree { expression, height };
        }
        Ok(left)
    }

    /// The operator that comes next, if one does.
    fn joint(&self) -> Result<Option<(Joint, Binding)>, LoadError> {
        let Token::Word(word) = self.peek() else {
            return Ok(None);
        };
        let operator = |operator, left, right| (Joint::Operator(operator), Binding { left, right });
        let arithmetic = |how, level| operator(Operator::Arithmetic(how), level, level);
        Ok(Some(match *word {
            "or" => (Joint::Or, Binding { left: 1, right: 1 }),
            "and" => (Joint::And, Binding { left: 2, right: 2 }),
            "<" => operator(Operator::Less, 3, 3),
            "<=" => operator(Operator::LessOrEqual, 3, 3),
            ">" => operator(Operator::Greater, 3, 3),
            ">=" => operator(Operator::GreaterOrEqual, 3, 3),
            "==" => operator(Operator::Equal, 3, 3),
            "~=" => operator(Operator::Unequal, 3, 3),
            ".." => operator(Operator::Concatenate, 5, 4),
            "+" => arithmetic(Arithmetic::Add, 6),
            "-" => arithmetic(Arithmetic::Subtract, 6),
            "*" => arithmetic(Arithmetic::Multiply, 7),
            "/" => arithmetic(Arithmetic::Divide, 7),
            "%" => arithmetic(Arithmetic::Modulo, 7),
            "^" => return Err(self.unsupported("the operator '^'")),
            _ => return Ok(None),
        }))
    }

    fn operand(&mut self) -> Result<Tree, LoadError> {
        let unary: Option<fn(Box<Expression>) -> Expression> = match self.peek() {
            Token::Word("not") => Some(Expression::Not),
            Token::Word("-") => Some(Expression::Negate),
            Token::Word("#") => Some(Expression::Length),
            _ => None,
        };
        if let Some(unary) = unary {
            self.skip();
            let operand = self.nested(|parser| parser.joined(UNARY))?;
            let height = self.above(&[&operand])?;
            return Ok(Tree {
                expression: unary(Box::new(operand.expression)),
                height,
            });
        }
        let literal = match self.peek() {
            Token::Number(number) => Expression::Number(*number),
            Token::Text(text) => Expression::Text(SharedBytes::from(text.as_slice())),
            Token::Word("nil") => Expression::Nil,
            Token::Word("true") => Expression::True,
            Token::Word("false") => Expression::False,
            Token::Word("{") => return self.table(),
            Token::Word("function") => return Err(self.unsupported("a function as a value")),
            Token::Word("...") => return Err(self.unsupported("'...'")),
            Token::Name(_) | Token::Word(_) | Token::End => return self.suffixed(),
        };
        self.skip();
        Ok(Tree::leaf(literal))
    }

    /// A variable, a field or a call.
    pub(super) fn suffixed(&mut self) -> Result<Tree, LoadError> {
        let mut prefix = self.prefix()?;
        loop {
            self.refuse_ambiguous_call()?;
            let calls = match self.peek() {
                Token::Word("(" | "{") | Token::Text(_) => true,
                Token::Word(":") => return Err(self.unsupported("a method call")),
                _ => false,
            };
            prefix = match prefix {
                Prefix::Function(function) if calls => Prefix::Value(self.call(function)?),
                Prefix::Function(function) => return Err(self.function_as_value(function)),
                Prefix::Value(_) if calls => {
                    return Err(self.unsupported("a call of a value that is no function's name"));
                }
                Prefix::Value(table) if self.is(".") || self.is("[") => Prefix::Value(self.field(table)?),
                Prefix::Value(tree) => return Ok(tree),
            };
        }
    }

    /// A parenthesis on another line than what it would call might begin a statement, so Lua takes it for neither.
    pub(super) fn refuse_ambiguous_call(&self) -> Result<(), LoadError> {
        if self.is("(") && self.line() != self.line_before() {
            return Err(self.unexpected("ambiguous syntax (function call x new statement)"));
        }
        Ok(())
    }

    fn function_as_value(&self, function: Function) -> LoadError {
        let name = match function {
            Function::Own(_) => "a function as a value".to_owned(),
            Function::Given(given) => format!("{} as a value", given_name(given)),
        };
        LoadError::unsupported(name, self.line_before())
    }

    fn prefix(&mut self) -> Result<Prefix, LoadError> {
        if self.take("(") {
            let inner = self.expression()?;
            self.expect(")")?;
            let height = self.above(&[&inner])?;
            let is_call = matches!(inner.expression, Expression::Call(_));
            return Ok(Prefix::Value(if is_call {
                Tree {
                    expression: Expression::First(Box::new(inner.expression)),
                    height,
                }
            } else {
                inner
            }));
        }
        let Token::Name(name) = self.peek() else {
            return Err(self.unexpected("unexpected symbol"));
        };
        match self.scopes.find(name) {
            Some(Found::Variable(variable)) => {
                self.skip();
                return Ok(Prefix::Value(Tree::leaf(Expression::Variable(variable))));
            }
            Some(Found::Function(callee)) => {
                self.skip();
                return Ok(Prefix::Function(Function::Own(callee)));
            }
            Some(Found::Alias(given)) => {
                self.skip();
                return Ok(Prefix::Function(Function::Given(given)));
            }
            None => {}
        }
        let list = match name.as_str() {
            "KEYS" => Some(Expression::Keys),
            "ARGV" => Some(Expression::Arguments),
            _ => None,
        };
        if let Some(list) = list {
            self.skip();
            return Ok(Prefix::Value(Tree::leaf(list)));
        }
        self.given().map(|given| Prefix::Function(Function::Given(given)))
    }

    /// A function that scripts are given, by its global name: `tonumber`, `redis.call`.
    pub(super) fn given(&mut self) -> Result<Given, LoadError> {
        let (name, words) = self.global_name();
        let Some(given) = find_given(&name) else {
            return Err(self.unsupported(if words == 1 {
                format!("the global '{name}'")
            } else {
                name
            }));
        };
        self.at = self.at.saturating_add(words);
        Ok(given)
    }

    /// The global name that comes next, with the library it stands in, and how many words it has.
    pub(super) fn global_name(&self) -> (String, usize) {
        let Token::Name(first) = self.peek() else {
            return (String::new(), 0);
        };
        let is_library = matches!(
            first.as_str(),
            "redis" | "string" | "table" | "math" | "cjson" | "bit" | "os"
        );
        match (self.peek_ahead(1), self.peek_ahead(2)) {
            (Token::Word("."), Token::Name(second)) if is_library => (format!("{first}.{second}"), 3),
            _ => (first.clone(), 1),
        }
    }

    fn field(&mut self, table: Tree) -> Result<Tree, LoadError> {
        let key = if self.take(".") {
            Tree::leaf(Expression::Text(SharedBytes::from(self.name()?.as_str())))
        } else {
            self.expect("[")?;
            let key = self.expression()?;
            self.expect("]")?;
            key
        };
        let height = self.above(&[&table, &key])?;
        Ok(Tree {
            expression: Expression::Field(Box::new([table.expression, key.expression])),
            height,
        })
    }

    fn call(&mut self, function: Function) -> Result<Tree, LoadError> {
        let line = self.line();
        let trees = self.nested(Self::arguments)?;
        let height = self.above(&trees.iter().collect::<Vec<_>>())?;
        let mut arguments: Vec<Expression> = trees.into_iter().map(|tree| tree.expression).collect();
        let callee = match function {
            Function::Own(callee) => callee,
            Function::Given(Given::Library(library)) => Callee::Library(library),
            Function::Given(Given::Call) => Callee::Command(take_verb("redis.call", &mut arguments, line)?),
            Function::Given(Given::ProtectedCall) => {
                Callee::ProtectedCommand(take_verb("redis.pcall", &mut arguments, line)?)
            }
            Function::Given(Given::EachPair) => {
                return Err(LoadError::unsupported("ipairs outside of a 'for'", line));
            }
        };
        let call = Call {
            line,
            callee,
            arguments,
        };
        Ok(Tree {
            expression: Expression::Call(Box::new(call)),
            height,
        })
    }

    fn arguments(&mut self) -> Result<Vec<Tree>, LoadError> {
        if let Token::Text(text) = self.peek() {
            let text = SharedBytes::from(text.as_slice());
            self.skip();
            return Ok(vec![Tree::leaf(Expression::Text(text))]);
        }
        if self.is("{") {
            return Ok(vec![self.table()?]);
        }
        self.expect("(")?;
        if self.take(")") {
            return Ok(Vec::new());
        }
        let list = self.expressions()?;
        self.expect(")")?;
        Ok(list)
    }

    fn table(&mut self) -> Result<Tree, LoadError> {
        self.nested(|parser| {
            parser.expect("{")?;
            let mut entries = Vec::new();
            let mut height = 1;
            while !parser.is("}") {
                let (entry, tall) = parser.entry()?;
                height = height.max(tall);
                entries.push(entry);
                if !parser.take(",") && !parser.take(";") {
                    break;
                }
            }
            parser.expect("}")?;
            Ok(Tree {
                expression: Expression::Table(entries),
                height,
            })
        })
    }

    fn entry(&mut self) -> Result<(Entry, usize), LoadError> {
        let is_named = matches!(
            (self.peek(), self.peek_ahead(1)),
            (Token::Name(_), Token::Word("="))
        );
        let key = if is_named {
            Tree::leaf(Expression::Text(SharedBytes::from(self.name()?.as_str())))
        } else if self.take("[") {
            let key = self.expression()?;
            self.expect("]")?;
            key
        } else {
            let item = self.expression()?;
            let height = self.above(&[&item])?;
            return Ok((Entry::Item(item.expression), height));
        };
        self.expect("=")?;
        let value = self.expression()?;
        let height = self.above(&[&key, &value])?;
        Ok((
            Entry::Named {
                key: key.expression,
                value: value.expression,
            },
            height,
        ))
    }

    /// The height of what stands above these.
    fn above(&self, trees: &[&Tree]) -> Result<usize, LoadError> {
        let tallest = trees.iter().map(|tree| tree.height).max().unwrap_or(0);
        if tallest >= SCRIPT_DEPTH_MAX {
            return Err(self.too_deep());
        }
        Ok(tallest.saturating_add(1))
    }
}

/// A function that scripts are given, by its global name.
pub(super) fn find_given(name: &str) -> Option<Given> {
    match name {
        "redis.call" => Some(Given::Call),
        "redis.pcall" => Some(Given::ProtectedCall),
        "ipairs" => Some(Given::EachPair),
        name => Library::named(name).map(Given::Library),
    }
}

fn given_name(given: Given) -> &'static str {
    match given {
        Given::Call => "redis.call",
        Given::ProtectedCall => "redis.pcall",
        Given::EachPair => "ipairs",
        Given::Library(library) => library.short_name(),
    }
}

/// The command that the first argument names.
fn take_verb(how: &str, arguments: &mut Vec<Expression>, line: u32) -> Result<Verb, LoadError> {
    let Some(Expression::Text(name)) = arguments.first() else {
        let construct = format!("{how} of a command that is not written out");
        return Err(LoadError::unsupported(construct, line));
    };
    let verb = Verb::named(name.as_slice());
    let Some(verb) = verb else {
        let shown: String = name.to_string().chars().take(super::NEAR_CHARS_MAX).collect();
        return Err(LoadError::unsupported(format!("{how} of '{shown}'"), line));
    };
    arguments.remove(0);
    Ok(verb)
}
