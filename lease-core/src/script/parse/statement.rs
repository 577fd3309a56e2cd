//! Statements.

use super::Parser;
use super::error::LoadError;
use super::expression::{Tree, find_given};
use super::lexer::Token;
use super::scope::{Given, Meaning};
use crate::script::program::{Act, Block, Branch, Expression, Function, Place, Statement};

/// Whether a function that is being read knows its own name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Naming {
    /// `local function f`: it does.
    Before,
    /// `local f = function`: it does not.
    After,
}

impl Parser {
    /// Statements up to the word that ends them, in a scope of their own.
    pub(super) fn block(&mut self) -> Result<Block, LoadError> {
        let mark = self.scopes.begin_block();
        let block = self.open_block();
        self.scopes.end_block(mark);
        block
    }

    /// Statements whose variables stay visible for what follows.
    fn open_block(&mut self) -> Result<Block, LoadError> {
        self.nested(|parser| {
            let mut block = Block::new();
            while !parser.is_block_end() {
                let is_last = parser.is("return") || parser.is("break");
                block.extend(parser.statement()?);
                parser.take(";");
                if is_last {
                    break;
                }
            }
            Ok(block)
        })
    }

    fn is_block_end(&self) -> bool {
        matches!(
            self.peek(),
            Token::End | Token::Word("end" | "else" | "elseif" | "until")
        )
    }

    /// One statement; none for the declaration of a function, which does nothing.
    fn statement(&mut self) -> Result<Option<Statement>, LoadError> {
        let line = self.line();
        let Token::Word(word) = self.peek() else {
            return self.assignment_or_call().map(|act| Some(Statement { line, act }));
        };
        let act = match *word {
            "local" => match self.local()? {
                Some(act) => act,
                None => return Ok(None),
            },
            "if" => self.conditional()?,
            "for" => self.loop_over()?,
            "while" => self.while_loop()?,
            "repeat" => self.repeat_loop()?,
            "do" => {
                self.skip();
                let block = self.block()?;
                self.expect("end")?;
                Act::Do(block)
            }
            "return" => self.returned()?,
            "break" if self.scopes.is_in_loop() => {
                self.skip();
                Act::Break
            }
            "break" => return Err(self.unexpected("no loop to break")),
            "function" => return Err(self.unsupported("a global function")),
            _ => self.assignment_or_call()?,
        };
        Ok(Some(Statement { line, act }))
    }

    fn returned(&mut self) -> Result<Act, LoadError> {
        self.skip();
        if self.is_block_end() || self.is(";") {
            return Ok(Act::Return(Vec::new()));
        }
        Ok(Act::Return(bare(self.expressions()?)))
    }

    fn assignment_or_call(&mut self) -> Result<Act, LoadError> {
        if let Some(refused) = self.assigned_global() {
            return Err(refused);
        }
        let first = self.suffixed()?;
        if !self.is("=") && !self.is(",") {
            return match first.expression {
                Expression::Call(call) => Ok(Act::Call(*call)),
                _ => Err(self.unexpected("syntax error")),
            };
        }
        let mut places = vec![self.place(first)?];
        while self.take(",") {
            if let Some(refused) = self.assigned_global() {
                return Err(refused);
            }
            let next = self.suffixed()?;
            places.push(self.place(next)?);
        }
        self.expect("=")?;
        let values = bare(self.expressions()?);
        Ok(Act::Assign { places, values })
    }

    /// A name that is no local variable, and is assigned to.
    fn assigned_global(&self) -> Option<LoadError> {
        let Token::Name(name) = self.peek() else {
            return None;
        };
        let is_assigned = matches!(self.peek_ahead(1), Token::Word("=" | ","));
        let is_variable = matches!(self.scopes.find(name), Some(super::scope::Found::Variable(_)));
        (is_assigned && !is_variable)
            .then(|| self.unsupported(format!("a new value for '{name}', which is no local variable")))
    }

    fn place(&self, tree: Tree) -> Result<Place, LoadError> {
        match tree.expression {
            Expression::Variable(variable) => Ok(Place::Variable(variable)),
            Expression::Field(pair) => {
                let [table, key] = *pair;
                Ok(Place::Field { table, key })
            }
            _ => Err(self.unexpected("syntax error")),
        }
    }

    /// `local ..`; `None` where nothing is left to be done when it is reached.
    fn local(&mut self) -> Result<Option<Act>, LoadError> {
        self.skip();
        if self.take("function") {
            let name = self.name()?;
            self.function(name, Naming::Before)?;
            return Ok(None);
        }
        let mut names = vec![self.name()?];
        while self.take(",") {
            names.push(self.name()?);
        }
        let mut values = Vec::new();
        if self.take("=") {
            if let [name] = names.as_slice() {
                let name = name.clone();
                if self.take("function") {
                    self.function(name, Naming::After)?;
                    return Ok(None);
                }
                if let Some(given) = self.alias() {
                    self.scopes.declare(name, Meaning::Alias(given));
                    return Ok(None);
                }
            }
            values = bare(self.expressions()?);
        }
        // The values do not see the names.
        let first = self.scopes.begin_block();
        let slots: Vec<u8> = names.iter().map(|_| self.slot()).collect::<Result<_, _>>()?;
        let count = u8::try_from(slots.len()).unwrap_or(u8::MAX);
        let _ = first;
        let first = slots.first().copied().unwrap_or(0);
        for (name, slot) in names.into_iter().zip(slots) {
            self.scopes.declare(name, Meaning::Slot(slot));
        }
        Ok(Some(Act::Declare { first, count, values }))
    }

    /// A library's function alone behind `local name =`, which makes the name another one for it.
    fn alias(&mut self) -> Option<Given> {
        let Token::Name(first) = self.peek() else {
            return None;
        };
        if self.scopes.find(first).is_some() {
            return None;
        }
        let (name, words) = self.global_name();
        let given = find_given(&name)?;
        let goes_on = match self.peek_ahead(words) {
            Token::Text(_) => true,
            Token::Word(word) => !matches!(
                *word,
                ";" | "local" | "if" | "for" | "while" | "repeat" | "do" | "return" | "break" | "end"
            ),
            Token::Name(_) | Token::Number(_) | Token::End => false,
        };
        if goes_on {
            return None;
        }
        self.at = self.at.saturating_add(words);
        Some(given)
    }

    fn function(&mut self, name: String, naming: Naming) -> Result<(), LoadError> {
        let number = self.reserve_function()?;
        if naming == Naming::Before {
            self.scopes.declare(name.clone(), Meaning::Function(number));
        }
        self.scopes.enter_function();
        self.expect("(")?;
        let mut parameters = 0_u8;
        while !self.is(")") {
            let parameter = self.name()?;
            let slot = self.slot()?;
            self.scopes.declare(parameter, Meaning::Slot(slot));
            parameters = parameters.saturating_add(1);
            if !self.take(",") {
                break;
            }
        }
        self.expect(")")?;
        let body = self.block()?;
        self.expect("end")?;
        let slots = self.scopes.leave_function();
        self.finish_function(
            number,
            Function {
                parameters,
                slots,
                body,
            },
        );
        if naming == Naming::After {
            self.scopes.declare(name, Meaning::Function(number));
        }
        Ok(())
    }

    fn slot(&mut self) -> Result<u8, LoadError> {
        self.scopes
            .take_slot()
            .ok_or_else(|| self.unexpected("too many local variables"))
    }

    fn conditional(&mut self) -> Result<Act, LoadError> {
        let mut branches = Vec::new();
        let mut otherwise = Block::new();
        self.skip();
        loop {
            let condition = self.expression()?.expression;
            self.expect("then")?;
            let block = self.block()?;
            branches.push(Branch { condition, block });
            if self.take("elseif") {
                continue;
            }
            if self.take("else") {
                otherwise = self.block()?;
            }
            self.expect("end")?;
            return Ok(Act::If { branches, otherwise });
        }
    }

    fn while_loop(&mut self) -> Result<Act, LoadError> {
        self.skip();
        let condition = self.expression()?.expression;
        self.expect("do")?;
        let block = self.loop_body()?;
        self.expect("end")?;
        Ok(Act::While(Branch { condition, block }))
    }

    fn repeat_loop(&mut self) -> Result<Act, LoadError> {
        self.skip();
        let mark = self.scopes.begin_block();
        self.scopes.begin_loop();
        let block = self.open_block()?;
        self.scopes.end_loop();
        self.expect("until")?;
        let condition = self.expression()?.expression;
        self.scopes.end_block(mark);
        Ok(Act::Repeat(Branch { condition, block }))
    }

    fn loop_body(&mut self) -> Result<Block, LoadError> {
        self.scopes.begin_loop();
        let block = self.block();
        self.scopes.end_loop();
        block
    }

    fn loop_over(&mut self) -> Result<Act, LoadError> {
        self.skip();
        let first = self.name()?;
        let mark = self.scopes.begin_block();
        let act = if self.take("=") {
            self.counted(first)?
        } else {
            self.each(first)?
        };
        self.scopes.end_block(mark);
        self.expect("end")?;
        Ok(act)
    }

    fn counted(&mut self, name: String) -> Result<Act, LoadError> {
        let from = self.expression()?.expression;
        self.expect(",")?;
        let to = self.expression()?.expression;
        let step = if self.take(",") {
            self.expression()?.expression
        } else {
            Expression::Number(1.0)
        };
        self.expect("do")?;
        let slot = self.slot()?;
        self.scopes.declare(name, Meaning::Slot(slot));
        let block = self.loop_body()?;
        Ok(Act::Count {
            slot,
            from,
            to,
            step,
            block,
        })
    }

    fn each(&mut self, first: String) -> Result<Act, LoadError> {
        let mut names = vec![first];
        while self.take(",") {
            names.push(self.name()?);
        }
        self.expect("in")?;
        let is_local = matches!(self.peek(), Token::Name(name) if self.scopes.find(name).is_some());
        let line = self.line();
        let given = if is_local {
            self.local_iterator()
        } else {
            self.given()?
        };
        self.refuse_ambiguous_call()?;
        let something_else = || LoadError::unsupported("a 'for' over something else than ipairs", line);
        if given != Given::EachPair || names.len() > 2 || !self.take("(") || self.is(")") {
            return Err(something_else());
        }
        let list = self.expression()?.expression;
        // Lua takes other numbers of arguments, and a call, a field or an operation of what ipairs gives.
        if self.is(",") {
            return Err(something_else());
        }
        self.expect(")")?;
        if !self.take("do") {
            return Err(something_else());
        }
        let (slot, value) = (self.slot()?, self.slot()?);
        for (name, slot) in names.into_iter().zip([slot, value]) {
            self.scopes.declare(name, Meaning::Slot(slot));
        }
        let block = self.loop_body()?;
        Ok(Act::Each { slot, list, block })
    }

    /// What a local name behind `in` stands for.
    fn local_iterator(&mut self) -> Given {
        let alias = match self.peek() {
            Token::Name(name) => match self.scopes.find(name) {
                Some(super::scope::Found::Alias(given)) => given,
                _ => Given::Call,
            },
            _ => Given::Call,
        };
        self.skip();
        alias
    }
}

fn bare(trees: Vec<Tree>) -> Vec<Expression> {
    trees.into_iter().map(|tree| tree.expression).collect()
}
