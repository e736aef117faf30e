//! `CREATE INDEX`, `CREATE CONSTRAINT`, `DROP INDEX`, `DROP CONSTRAINT`: parsed from tokens,
//! because the parser's AST omits their targets.

use std::sync::Arc;

use super::Source;
use super::scan::{Token, TokenKind};
use crate::error::{Detail, Error, ErrorKind, Result};
use crate::ir::{SchemaChange, SchemaKind, SchemaTarget};

/// The schema command, if the text is one.
pub(super) fn schema_change(source: &Source<'_>, tokens: &[Token]) -> Result<Option<SchemaChange>> {
    let mut reader = Reader { source, tokens, at: 0 };
    if reader.word("CREATE") {
        let mut kind = None;
        for name in ["RANGE", "TEXT", "POINT", "LOOKUP", "FULLTEXT", "VECTOR", "BTREE"] {
            if reader.peek_word(name) && reader.peek_word_at(1, "INDEX") {
                reader.at += 1;
                kind = Some(name);
            }
        }
        return match kind {
            None | Some("RANGE" | "BTREE" | "TEXT") if reader.word("INDEX") => {
                reader.create_index().map(Some)
            }
            Some(kind) => Err(reader.unsupported(&format!("{kind} indexes"))),
            None if reader.word("CONSTRAINT") => reader.create_constraint().map(Some),
            None => Ok(None),
        };
    }
    if reader.word("DROP") {
        let constraint = reader.word("CONSTRAINT");
        if !constraint {
            reader.expect_word("INDEX")?;
        }
        return reader.drop(constraint).map(Some);
    }
    Ok(None)
}

struct Reader<'r, 's> {
    source: &'r Source<'s>,
    tokens: &'r [Token],
    at: usize,
}

impl Reader<'_, '_> {
    fn create_index(&mut self) -> Result<SchemaChange> {
        let (name, if_not_exists) = self.name_and_condition()?;
        self.expect_word("FOR")?;
        let (variable, on, label) = self.target()?;
        self.expect_word("ON")?;
        let keys = self.keys(&variable)?;
        if on == SchemaTarget::Relationships && keys.len() > 1 {
            // No lookup would use it.
            return Err(self.unsupported("Indexes of relationships with several keys"));
        }
        self.options()?;
        Ok(SchemaChange::Create { name, kind: SchemaKind::Range, on, label, keys, if_not_exists })
    }

    fn create_constraint(&mut self) -> Result<SchemaChange> {
        let (name, if_not_exists) = self.name_and_condition()?;
        if !self.word("FOR") {
            self.expect_word("ON")?;
        }
        let (variable, on, label) = self.target()?;
        if !self.word("REQUIRE") {
            self.expect_word("ASSERT")?;
        }
        let keys = self.keys(&variable)?;
        self.expect_word("IS")?;
        let kind = self.constraint_kind()?;
        self.options()?;
        Ok(SchemaChange::Create { name, kind, on, label, keys, if_not_exists })
    }

    /// `UNIQUE`, `NOT NULL`, `NODE KEY` and the like.
    fn constraint_kind(&mut self) -> Result<SchemaKind> {
        if self.word("NOT") {
            self.expect_word("NULL")?;
            return Ok(SchemaKind::Exists);
        }
        if !self.word("NODE") && !self.word("RELATIONSHIP") {
            self.word("REL");
        }
        if self.word("UNIQUE") {
            Ok(SchemaKind::Unique)
        } else if self.word("KEY") {
            Ok(SchemaKind::Key)
        } else {
            Err(self.unsupported("Constraints other than UNIQUE, NOT NULL and KEY"))
        }
    }

    fn drop(&mut self, constraint: bool) -> Result<SchemaChange> {
        let name = self.name()?;
        let if_exists = self.word("IF");
        if if_exists {
            self.expect_word("EXISTS")?;
        }
        self.end()?;
        Ok(SchemaChange::Drop { name, constraint, if_exists })
    }

    fn name_and_condition(&mut self) -> Result<(Option<Arc<str>>, bool)> {
        let begins_rest = self.peek_word("IF") || self.peek_word("FOR") || self.peek_word("ON");
        let name = if begins_rest { None } else { Some(self.name()?) };
        let if_not_exists = self.word("IF");
        if if_not_exists {
            self.expect_word("NOT")?;
            self.expect_word("EXISTS")?;
        }
        Ok((name, if_not_exists))
    }

    /// `(n:Label)` or `()-[r:TYPE]-()`
    fn target(&mut self) -> Result<(Arc<str>, SchemaTarget, Arc<str>)> {
        self.expect_symbol(b'(')?;
        if !self.symbol(b')') {
            let variable = self.name()?;
            self.expect_symbol(b':')?;
            let label = self.name()?;
            self.expect_symbol(b')')?;
            return Ok((variable, SchemaTarget::Nodes, label));
        }
        self.symbol(b'<');
        self.expect_symbol(b'-')?;
        self.expect_symbol(b'[')?;
        let variable = self.name()?;
        self.expect_symbol(b':')?;
        let label = self.name()?;
        self.expect_symbol(b']')?;
        self.expect_symbol(b'-')?;
        self.symbol(b'>');
        self.expect_symbol(b'(')?;
        self.expect_symbol(b')')?;
        Ok((variable, SchemaTarget::Relationships, label))
    }

    /// `n.a`, `(n.a, n.b)`
    fn keys(&mut self, variable: &str) -> Result<Vec<Arc<str>>> {
        let brackets = self.symbol(b'(');
        let mut keys = Vec::new();
        loop {
            let subject = self.name()?;
            if *subject != *variable {
                return Err(self.fail(
                    Detail::UndefinedVariable,
                    &format!("Variable `{subject}` not defined"),
                ));
            }
            self.expect_symbol(b'.')?;
            keys.push(self.name()?);
            if !brackets || !self.symbol(b',') {
                break;
            }
        }
        if brackets {
            self.expect_symbol(b')')?;
        }
        Ok(keys)
    }

    /// `OPTIONS { … }` selects an index provider; there is only one here, so it is ignored.
    fn options(&mut self) -> Result<()> {
        if self.word("OPTIONS") {
            self.at = self.tokens.len();
        }
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.symbol(b';');
        if self.at < self.tokens.len() {
            Err(self.unexpected("the end of the statement"))
        } else {
            Ok(())
        }
    }

    fn peek_word(&self, word: &str) -> bool {
        self.peek_word_at(0, word)
    }

    fn peek_word_at(&self, ahead: usize, word: &str) -> bool {
        self.tokens.get(self.at + ahead).is_some_and(|token| token.is_word(self.source.text, word))
    }

    fn word(&mut self, word: &str) -> bool {
        let found = self.peek_word(word);
        self.at += usize::from(found);
        found
    }

    fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.word(word) { Ok(()) } else { Err(self.unexpected(word)) }
    }

    fn symbol(&mut self, symbol: u8) -> bool {
        let found = self.tokens.get(self.at).is_some_and(|token| token.is_symbol(symbol));
        self.at += usize::from(found);
        found
    }

    fn expect_symbol(&mut self, symbol: u8) -> Result<()> {
        if self.symbol(symbol) {
            Ok(())
        } else {
            Err(self.unexpected(&format!("'{}'", char::from(symbol))))
        }
    }

    fn name(&mut self) -> Result<Arc<str>> {
        let Some(token) = self.tokens.get(self.at).filter(|token| token.is_name()) else {
            return Err(self.unexpected("a name"));
        };
        self.at += 1;
        let text = self.source.text.get(token.span.clone()).unwrap_or_default();
        Ok(match token.kind {
            TokenKind::Quoted => text.trim_matches('`').replace("``", "`").into(),
            _ => text.into(),
        })
    }

    fn unexpected(&self, expected: &str) -> Error {
        let found =
            self.tokens.get(self.at).and_then(|token| self.source.text.get(token.span.clone()));
        let message = match found {
            Some(found) => format!("Invalid input '{found}': expected {expected}"),
            None => format!("Unexpected end of input: expected {expected}"),
        };
        self.fail(Detail::UnexpectedSyntax, &message)
    }

    fn unsupported(&self, what: &str) -> Error {
        self.fail(Detail::Unsupported, &format!("{what} are not supported"))
    }

    fn fail(&self, detail: Detail, message: &str) -> Error {
        let at = self.tokens.get(self.at).map_or(self.source.text.len(), |token| token.span.start);
        let error = Error::compile(ErrorKind::SyntaxError, detail, message);
        self.source.at_original(error, at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Source, scan};
    use super::schema_change;
    use crate::ir::{SchemaChange, SchemaKind, SchemaTarget};

    fn read(text: &str) -> Result<Option<SchemaChange>, String> {
        let source = Source::of(text);
        schema_change(&source, &scan::tokens(text)).map_err(|error| error.to_string())
    }

    #[test]
    fn indexes_and_constraints_are_read() {
        let index = SchemaChange::Create {
            name: Some("by_id".into()),
            kind: SchemaKind::Range,
            on: SchemaTarget::Nodes,
            label: "T".into(),
            keys: vec!["id".into()],
            if_not_exists: true,
        };
        assert_eq!(read("CREATE INDEX by_id IF NOT EXISTS FOR (n:T) ON (n.id)"), Ok(Some(index)));
        let constraint = SchemaChange::Create {
            name: None,
            kind: SchemaKind::Unique,
            on: SchemaTarget::Relationships,
            label: "K".into(),
            keys: vec!["a b".into(), "c".into()],
            if_not_exists: false,
        };
        let text = "create constraint for ()-[r:K]-() require (r.`a b`, r.c) is unique;";
        assert_eq!(read(text), Ok(Some(constraint)));
        assert_eq!(
            read("DROP INDEX x IF EXISTS"),
            Ok(Some(SchemaChange::Drop { name: "x".into(), constraint: false, if_exists: true }))
        );
        assert_eq!(read("CREATE (n)"), Ok(None));
        assert_eq!(
            read("CREATE INDEX FOR (n:T) ON (m.id)").unwrap_err(),
            "Variable `m` not defined (line 1, column 29 (offset: 28))\n\"CREATE INDEX FOR (n:T) ON (m.id)\"\n                             ^"
        );
        assert!(
            read("CREATE FULLTEXT INDEX FOR (n:T) ON (n.id)")
                .unwrap_err()
                .contains("not supported")
        );
    }
}
