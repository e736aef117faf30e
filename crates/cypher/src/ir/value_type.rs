//! Types of values, as in `x IS :: INTEGER NOT NULL`.

/// A type: a union of alternatives.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueType {
    /// The alternatives.
    pub alternatives: Vec<TypeAlternative>,
}

/// A type that is not a union.
#[derive(Debug, Clone, PartialEq)]
pub struct TypeAlternative {
    /// The type of values other than null.
    pub base: BaseType,
    /// Whether null belongs to it.
    pub nullable: bool,
}

/// A type of values other than null.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the types of the language, under their names")]
pub enum BaseType {
    Any,
    Nothing,
    Boolean,
    String,
    Integer,
    Float,
    Date,
    LocalTime,
    Time,
    LocalDateTime,
    DateTime,
    Duration,
    Point,
    Node,
    Relationship,
    Map,
    Path,
    /// Any value that a property can have.
    Property,
    /// A list of values of a type.
    List(Box<ValueType>),
}

impl ValueType {
    /// Parses a type in capitals: `LIST<STRING NOT NULL>`, `INTEGER | FLOAT`. `None` if it is
    /// invalid.
    pub fn parse(text: &str) -> Option<Self> {
        parse(text, MAX_DEPTH)
    }
}

/// Maximum nesting of lists in a type.
const MAX_DEPTH: u32 = 64;

fn parse(text: &str, depth: u32) -> Option<ValueType> {
    let depth = depth.checked_sub(1)?;
    let text = text.trim();
    let inner = text.strip_prefix("ANY VALUE<").or_else(|| text.strip_prefix("ANY<"));
    if let Some(inner) = inner.and_then(|inner| inner.strip_suffix('>')) {
        return parse(inner, depth);
    }
    let alternatives = parts(text).into_iter().map(|part| alternative(part, depth));
    Some(ValueType { alternatives: alternatives.collect::<Option<Vec<_>>>()? })
}

/// The parts between bars outside of brackets.
fn parts(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    text.split(|character| {
        match character {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == '|' && depth == 0
    })
    .collect()
}

fn alternative(text: &str, depth: u32) -> Option<TypeAlternative> {
    let text = text.trim();
    let required = text.strip_suffix("NOT NULL").or_else(|| text.strip_suffix('!'));
    let name = required.unwrap_or(text).trim();
    let base = match name.strip_prefix("LIST").or_else(|| name.strip_prefix("ARRAY")).map(str::trim)
    {
        Some(rest) => {
            let inner = rest.strip_prefix('<')?.strip_suffix('>')?;
            BaseType::List(Box::new(parse(inner, depth)?))
        }
        None => base(name)?,
    };
    // The type NOTHING has no values, and the type NULL only null.
    let nullable = required.is_none() && name != "NOTHING";
    Some(TypeAlternative { base, nullable })
}

fn base(name: &str) -> Option<BaseType> {
    Some(match name {
        "ANY" | "ANY VALUE" => BaseType::Any,
        "NOTHING" | "NULL" => BaseType::Nothing,
        "BOOL" | "BOOLEAN" => BaseType::Boolean,
        "STRING" | "VARCHAR" => BaseType::String,
        "INT" | "INTEGER" | "SIGNED INTEGER" | "INT64" | "INTEGER64" => BaseType::Integer,
        "FLOAT" | "FLOAT64" => BaseType::Float,
        "DATE" => BaseType::Date,
        "LOCAL TIME" | "TIME WITHOUT TIMEZONE" | "TIME WITHOUT TIME ZONE" => BaseType::LocalTime,
        "ZONED TIME" | "TIME WITH TIMEZONE" | "TIME WITH TIME ZONE" => BaseType::Time,
        "LOCAL DATETIME" | "TIMESTAMP WITHOUT TIMEZONE" | "TIMESTAMP WITHOUT TIME ZONE" => {
            BaseType::LocalDateTime
        }
        "ZONED DATETIME" | "TIMESTAMP WITH TIMEZONE" | "TIMESTAMP WITH TIME ZONE" => {
            BaseType::DateTime
        }
        "DURATION" => BaseType::Duration,
        "POINT" => BaseType::Point,
        "NODE" | "ANY NODE" | "VERTEX" | "ANY VERTEX" => BaseType::Node,
        "RELATIONSHIP" | "ANY RELATIONSHIP" | "EDGE" | "ANY EDGE" => BaseType::Relationship,
        "MAP" | "ANY MAP" => BaseType::Map,
        "PATH" => BaseType::Path,
        "PROPERTY VALUE" | "ANY PROPERTY VALUE" => BaseType::Property,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_with_their_alternatives() {
        let read =
            ValueType::parse("LIST<INTEGER | STRING NOT NULL> NOT NULL | FLOAT").expect("a type");
        let [list, float] = read.alternatives.as_slice() else { panic!("{read:?}") };
        assert!(!list.nullable && float.nullable && float.base == BaseType::Float);
        let BaseType::List(inner) = &list.base else { panic!("{list:?}") };
        assert_eq!(inner.alternatives.len(), 2);
        for nonsense in ["", "NUMBER", "LIST", "LIST<", "LIST<>", "INTEGER |", "<>", "ANY<"] {
            assert_eq!(ValueType::parse(nonsense), None, "{nonsense}");
        }
    }
}
