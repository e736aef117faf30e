//! `CREATE INDEX`, `CREATE CONSTRAINT`, `DROP INDEX`, `DROP CONSTRAINT`: parsed from tokens,
//! because the parser's AST omits their targets.

use std::sync::Arc;

use super::Source;
use super::scan::{Token, TokenKind};
use crate::error::{Detail, Error, ErrorKind, Result};
use crate::ir::{SchemaChange, SchemaCreation, SchemaKind, SchemaTarget, SchemaValue};

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
        let creation = match kind {
            Some(kind @ ("POINT" | "LOOKUP")) => {
                return Err(reader.unsupported(&format!("{kind} indexes")));
            }
            _ if reader.word("INDEX") => reader.create_index(kind)?,
            _ if reader.word("CONSTRAINT") => reader.create_constraint()?,
            _ => return Ok(None),
        };
        return Ok(Some(SchemaChange::Create(creation)));
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

/// The parameters that a schema command reads.
pub(super) fn parameters(change: &SchemaChange) -> Vec<Arc<str>> {
    let values: Vec<&SchemaValue> = match change {
        SchemaChange::Create(creation) => {
            creation.name.iter().chain(creation.options.iter().map(|(_, value)| value)).collect()
        }
        SchemaChange::Drop { name, .. } => vec![name],
    };
    let mut names: Vec<Arc<str>> = Vec::new();
    for value in values {
        if let SchemaValue::Parameter(name) = value
            && !names.contains(name)
        {
            names.push(Arc::clone(name));
        }
    }
    names
}

struct Reader<'r, 's> {
    source: &'r Source<'s>,
    tokens: &'r [Token],
    at: usize,
}

/// The options of a schema command.
type Options = Vec<(Arc<str>, SchemaValue)>;

impl Reader<'_, '_> {
    fn create_index(&mut self, kind: Option<&str>) -> Result<SchemaCreation> {
        let kind = match kind {
            Some("FULLTEXT") => SchemaKind::Fulltext,
            Some("VECTOR") => SchemaKind::Vector,
            _ => SchemaKind::Range,
        };
        let (name, if_not_exists) = self.name_and_condition()?;
        self.expect_word("FOR")?;
        let (variable, on, labels) = self.target(kind == SchemaKind::Fulltext)?;
        self.expect_word("ON")?;
        let keys = match kind {
            SchemaKind::Fulltext => {
                self.expect_word("EACH")?;
                self.keys(&variable, Some([b'[', b']']))?
            }
            _ => {
                let brackets = self.peek_symbol(b'(').then_some([b'(', b')']);
                self.keys(&variable, brackets)?
            }
        };
        if kind == SchemaKind::Range && on == SchemaTarget::Relationships && keys.len() > 1 {
            // No lookup would use it.
            return Err(self.unsupported("Indexes of relationships with several keys"));
        }
        let options = self.options()?;
        Ok(SchemaCreation { name, kind, on, labels, keys, options, if_not_exists })
    }

    fn create_constraint(&mut self) -> Result<SchemaCreation> {
        let (name, if_not_exists) = self.name_and_condition()?;
        if !self.word("FOR") {
            self.expect_word("ON")?;
        }
        let (variable, on, labels) = self.target(false)?;
        if !self.word("REQUIRE") {
            self.expect_word("ASSERT")?;
        }
        let brackets = self.peek_symbol(b'(').then_some([b'(', b')']);
        let keys = self.keys(&variable, brackets)?;
        self.expect_word("IS")?;
        let kind = self.constraint_kind()?;
        let options = self.options()?;
        Ok(SchemaCreation { name, kind, on, labels, keys, options, if_not_exists })
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
        let name = self.name_or_parameter()?;
        let if_exists = self.word("IF");
        if if_exists {
            self.expect_word("EXISTS")?;
        }
        self.end()?;
        Ok(SchemaChange::Drop { name, constraint, if_exists })
    }

    fn name_and_condition(&mut self) -> Result<(Option<SchemaValue>, bool)> {
        let begins_rest = self.peek_word("IF") || self.peek_word("FOR") || self.peek_word("ON");
        let name = if begins_rest { None } else { Some(self.name_or_parameter()?) };
        let if_not_exists = self.word("IF");
        if if_not_exists {
            self.expect_word("NOT")?;
            self.expect_word("EXISTS")?;
        }
        Ok((name, if_not_exists))
    }

    fn name_or_parameter(&mut self) -> Result<SchemaValue> {
        let is_parameter = self.symbol(b'$');
        let name = self.name()?;
        Ok(if is_parameter { SchemaValue::Parameter(name) } else { SchemaValue::Text(name) })
    }

    /// `(n:Label)` or `()-[r:TYPE]-()`; with `several`, also `(n:A|B)`.
    fn target(&mut self, several: bool) -> Result<(Arc<str>, SchemaTarget, Vec<Arc<str>>)> {
        self.expect_symbol(b'(')?;
        if !self.symbol(b')') {
            let (variable, labels) = self.variable_and_labels(several)?;
            self.expect_symbol(b')')?;
            return Ok((variable, SchemaTarget::Nodes, labels));
        }
        self.symbol(b'<');
        self.expect_symbol(b'-')?;
        self.expect_symbol(b'[')?;
        let (variable, labels) = self.variable_and_labels(several)?;
        self.expect_symbol(b']')?;
        self.expect_symbol(b'-')?;
        self.symbol(b'>');
        self.expect_symbol(b'(')?;
        self.expect_symbol(b')')?;
        Ok((variable, SchemaTarget::Relationships, labels))
    }

    fn variable_and_labels(&mut self, several: bool) -> Result<(Arc<str>, Vec<Arc<str>>)> {
        let variable = self.name()?;
        self.expect_symbol(b':')?;
        let mut labels = vec![self.name()?];
        while several && self.symbol(b'|') {
            self.symbol(b':');
            labels.push(self.name()?);
        }
        Ok((variable, labels))
    }

    /// `n.a`, `(n.a, n.b)`, `[n.a, n.b]`
    fn keys(&mut self, variable: &str, brackets: Option<[u8; 2]>) -> Result<Vec<Arc<str>>> {
        if let Some([open, _]) = brackets {
            self.expect_symbol(open)?;
        }
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
            if brackets.is_none() || !self.symbol(b',') {
                break;
            }
        }
        if let Some([_, close]) = brackets {
            self.expect_symbol(close)?;
        }
        Ok(keys)
    }

    /// `OPTIONS { indexProvider: …, indexConfig: { … } }`, and the end of the statement. A map that
    /// is a parameter has no effect.
    fn options(&mut self) -> Result<Options> {
        let mut options = Vec::new();
        if self.word("OPTIONS") {
            if self.symbol(b'$') {
                self.name()?;
            } else {
                self.option_map(&mut options)?;
            }
        }
        self.end()?;
        Ok(options)
    }

    /// The entries of a map, those of maps within it included.
    fn option_map(&mut self, options: &mut Options) -> Result<()> {
        self.expect_symbol(b'{')?;
        if self.symbol(b'}') {
            return Ok(());
        }
        loop {
            let name = self.name()?;
            self.expect_symbol(b':')?;
            if self.peek_symbol(b'{') {
                self.option_map(options)?;
            } else {
                let value = self.option_value()?;
                options.push((name, value));
            }
            if !self.symbol(b',') {
                return self.expect_symbol(b'}');
            }
        }
    }

    /// A string, an integer, a parameter, `toInteger(…)` of one of these, or any other value.
    fn option_value(&mut self) -> Result<SchemaValue> {
        if self.symbol(b'$') {
            return self.name().map(SchemaValue::Parameter);
        }
        if self.peek_word("toInteger")
            && self.tokens.get(self.at + 1).is_some_and(|it| it.is_symbol(b'('))
        {
            self.at += 2;
            let value = self.option_value()?;
            self.expect_symbol(b')')?;
            return Ok(match &value {
                SchemaValue::Text(text) => {
                    text.trim().parse().map_or(SchemaValue::Other, SchemaValue::Integer)
                }
                _ => value,
            });
        }
        let Some(token) = self.tokens.get(self.at) else {
            return Err(self.unexpected("a value"));
        };
        let text = self.source.text.get(token.span.clone()).unwrap_or_default();
        match token.kind {
            TokenKind::String => {
                self.at += 1;
                let inside = text.get(1..text.len().saturating_sub(1)).unwrap_or_default();
                Ok(SchemaValue::Text(inside.replace("\\'", "'").into()))
            }
            _ => self.other_value(),
        }
    }

    /// An integer, or the tokens up to the next comma or closing bracket.
    fn other_value(&mut self) -> Result<SchemaValue> {
        let from = self.at;
        let mut depth = 0_usize;
        while let Some(token) = self.tokens.get(self.at) {
            match token.kind {
                TokenKind::Symbol(b'(' | b'[' | b'{') => depth += 1,
                TokenKind::Symbol(b')' | b']' | b'}') if depth > 0 => depth -= 1,
                TokenKind::Symbol(b')' | b']' | b'}' | b',') if depth == 0 => break,
                _ => {}
            }
            self.at += 1;
        }
        match self.tokens.get(from..self.at).unwrap_or_default() {
            [] => Err(self.unexpected("a value")),
            [one] if one.kind == TokenKind::Number => {
                let text = self.source.text.get(one.span.clone()).unwrap_or_default();
                let number = text.replace('_', "").parse();
                Ok(number.map_or(SchemaValue::Other, SchemaValue::Integer))
            }
            _ => Ok(SchemaValue::Other),
        }
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

    fn peek_symbol(&self, symbol: u8) -> bool {
        self.tokens.get(self.at).is_some_and(|token| token.is_symbol(symbol))
    }

    fn symbol(&mut self, symbol: u8) -> bool {
        let found = self.peek_symbol(symbol);
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
    use crate::ir::{SchemaChange, SchemaCreation, SchemaKind, SchemaTarget, SchemaValue};

    fn read(text: &str) -> Result<Option<SchemaChange>, String> {
        let source = Source::of(text);
        schema_change(&source, &scan::tokens(text)).map_err(|error| error.to_string())
    }

    #[test]
    fn indexes_and_constraints_are_read() {
        let index = SchemaChange::Create(SchemaCreation {
            name: Some(SchemaValue::Text("by_id".into())),
            kind: SchemaKind::Range,
            on: SchemaTarget::Nodes,
            labels: vec!["T".into()],
            keys: vec!["id".into()],
            options: Vec::new(),
            if_not_exists: true,
        });
        assert_eq!(read("CREATE INDEX by_id IF NOT EXISTS FOR (n:T) ON (n.id)"), Ok(Some(index)));
        let constraint = SchemaChange::Create(SchemaCreation {
            name: None,
            kind: SchemaKind::Unique,
            on: SchemaTarget::Relationships,
            labels: vec!["K".into()],
            keys: vec!["a b".into(), "c".into()],
            options: Vec::new(),
            if_not_exists: false,
        });
        let text = "create constraint for ()-[r:K]-() require (r.`a b`, r.c) is unique;";
        assert_eq!(read(text), Ok(Some(constraint)));
        assert_eq!(
            read("DROP INDEX x IF EXISTS"),
            Ok(Some(SchemaChange::Drop {
                name: SchemaValue::Text("x".into()),
                constraint: false,
                if_exists: true
            }))
        );
        assert_eq!(read("CREATE (n)"), Ok(None));
        assert_eq!(
            read("CREATE INDEX FOR (n:T) ON (m.id)").unwrap_err(),
            "Variable `m` not defined (line 1, column 29 (offset: 28))\n\"CREATE INDEX FOR (n:T) ON (m.id)\"\n                             ^"
        );
        assert!(
            read("CREATE POINT INDEX FOR (n:T) ON (n.id)").unwrap_err().contains("not supported")
        );
    }

    #[test]
    fn indexes_of_vectors_and_words_are_read() {
        let created = |text: &str| match read(text) {
            Ok(Some(SchemaChange::Create(creation))) => creation,
            other => panic!("{text}: {other:?}"),
        };
        let vectors = created(
            "CREATE VECTOR INDEX $name IF NOT EXISTS FOR (m:`A b`) ON m.`v` OPTIONS { indexConfig: \
             {`vector.dimensions`: toInteger($d), `vector.similarity_function`: 'cosine', x: [1, {y: 2}]}, \
             indexProvider: 'vector-2.0'}",
        );
        assert_eq!(vectors.kind, SchemaKind::Vector);
        assert_eq!(vectors.options[0].1, SchemaValue::Parameter("d".into()));
        assert_eq!(vectors.options[1].1, SchemaValue::Text("cosine".into()));
        assert_eq!(vectors.options[2].1, SchemaValue::Other);
        let parameters = super::parameters(&SchemaChange::Create(vectors));
        assert_eq!(parameters, ["name".into(), "d".into()]);
        let words = created("CREATE FULLTEXT INDEX w FOR ()-[r:A|B]-() ON EACH [r.a, r.`b c`];");
        assert_eq!((words.labels.len(), words.keys.len()), (2, 2));
        assert_eq!(words.on, SchemaTarget::Relationships);
        let dimensions =
            created("CREATE VECTOR INDEX FOR (n:A) ON (n.v) OPTIONS {a: 1_536, b: -1}");
        assert_eq!(dimensions.options[0].1, SchemaValue::Integer(1536));
        assert_eq!(dimensions.options[1].1, SchemaValue::Other);
        for wrong in [
            "CREATE FULLTEXT INDEX w FOR (n:A) ON (n.a)",
            "CREATE INDEX w FOR (n:A|B) ON (n.a)",
            "CREATE VECTOR INDEX w FOR (n:A) ON (n.a) OPTIONS {a: }",
            "CREATE VECTOR INDEX w FOR (n:A) ON (n.a) OPTIONS {a: 1",
            "CREATE VECTOR INDEX w FOR (n:A) ON (n.a) OPTIONS {a 1}",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
