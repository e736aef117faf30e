//! Rewrites `SHOW` statements to calls of the procedures that list what is shown.

use super::rewrite::Edit;
use super::scan::{Token, TokenKind};
use crate::procedure::{SHOW_COMMAND_LISTS, ShowCommandList};

/// Rewrites a `SHOW` statement if it is supported.
///
/// `SHOW INDEXES YIELD name, type AS t ORDER BY t WHERE t = 'RANGE'` becomes `CALL
/// show.indexes(null) YIELD name, type AS t WITH * ORDER BY t WHERE t = 'RANGE' RETURN name, t`.
pub(super) fn rewrite_show(text: &str, tokens: &[Token], edits: &mut Vec<Edit>) {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|it| it.is_word(text, word));
    let first = usize::from(is(0, "EXPLAIN") || is(0, "PROFILE"));
    if !is(first, "SHOW") {
        return;
    }
    let Some(command) = command(text, tokens, first + 1) else { return };
    let (Some(show), Some(last)) = (tokens.get(first), tokens.get(command.end - 1)) else { return };
    let rest = tokens.get(command.end..).unwrap_or_default();
    let rest = match rest {
        [rest @ .., last] if last.is_symbol(b';') => rest,
        rest => rest,
    };
    let new = format!("CALL {}({})", command.shown.procedure, command.argument);
    let mut call = Edit { from: show.span.start, to: last.span.end, new };
    let place = |word: &str| rest.iter().position(|it| it.is_word(text, word));
    let brief = || quoted(command.shown.brief.iter().copied());
    let returned = if !rest.first().is_some_and(|it| it.is_word(text, "YIELD")) {
        // Without YIELD, only WHERE may follow.
        call.new.push_str(&format!(" YIELD {}", brief()));
        place("WHERE").map(|_| brief())
    } else {
        let all = || quoted(command.shown.columns.iter().map(|column| column.name));
        let end = ["ORDER", "SKIP", "OFFSET", "LIMIT"].iter().filter_map(|word| place(word)).min();
        let stop = place("RETURN").unwrap_or(rest.len());
        let sorted = end.filter(|end| *end < stop).and_then(|end| rest.get(end));
        if let Some(sorted) = sorted {
            let at = sorted.span.start;
            edits.push(Edit { from: at, to: at, new: "WITH * ".to_owned() });
        }
        let star = rest.get(1).filter(|it| it.is_symbol(b'*'));
        if let Some(star) = star {
            edits.push(Edit { from: star.span.start, to: star.span.end, new: all() });
        }
        let needs_return = sorted.is_some() || place("WHERE").is_some_and(|at| at < stop);
        needs_return.then(|| if star.is_some() { all() } else { yielded(text, rest) })
    };
    edits.push(call);
    if let Some((returned, end)) = returned.zip(rest.last())
        && place("RETURN").is_none()
    {
        let at = end.span.end;
        edits.push(Edit { from: at, to: at, new: format!(" RETURN {returned}") });
    }
}

/// What a `SHOW` statement asks for.
struct Command {
    shown: &'static ShowCommandList,
    /// The argument of its procedure, as an expression.
    argument: String,
    /// The number of the token after it.
    end: usize,
}

/// The words between `SHOW` and `YIELD` or `WHERE`, if they are a supported command.
fn command(text: &str, tokens: &[Token], first: usize) -> Option<Command> {
    /// The longest is `RELATIONSHIP PROPERTY TYPE CONSTRAINTS`.
    const MOST_WORDS: usize = 4;
    let word = |at: usize| {
        let token = tokens.get(at).filter(|token| token.kind == TokenKind::Word)?;
        Some(text.get(token.span.clone())?.to_ascii_uppercase())
    };
    let mut kinds = Vec::new();
    for at in first..first + MOST_WORDS {
        let word = word(at)?;
        let listed = SHOW_COMMAND_LISTS.iter().find(|(names, _)| names.contains(&word.as_str()));
        let shown = match listed {
            // In `SHOW USER DEFINED FUNCTIONS`, the word is no end.
            Some((_, shown)) if word != "USER" || kinds == ["CURRENT"] => shown,
            _ => {
                kinds.push(word);
                continue;
            }
        };
        let kind = kinds.join(" ");
        let end = at + 1;
        let (argument, end) = match shown.procedure {
            "show.databases" => database(text, tokens, &kind, end)?,
            "show.indexes" => (index_types(&kind)?, end),
            "show.constraints" => (constraint_types(&kind)?, end),
            "show.user" => (String::new(), end),
            _ => {
                let is_built_in = match kind.as_str() {
                    "" | "ALL" | "BUILT IN" => true,
                    "USER DEFINED" => false,
                    _ => return None,
                };
                (is_built_in.to_string(), executable(text, tokens, end))
            }
        };
        return Some(Command { shown, argument, end });
    }
    None
}

/// After `EXECUTABLE`, `EXECUTABLE BY CURRENT USER` and `EXECUTABLE BY name`: everybody may execute
/// everything.
fn executable(text: &str, tokens: &[Token], at: usize) -> usize {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|it| it.is_word(text, word));
    match (is(at, "EXECUTABLE"), is(at + 1, "BY"), is(at + 2, "CURRENT") && is(at + 3, "USER")) {
        (false, ..) => at,
        (true, false, _) => at + 1,
        (true, true, true) => at + 4,
        (true, true, false) => at + 3,
    }
}

/// Which databases, and the number of the token after their name.
fn database(text: &str, tokens: &[Token], kind: &str, end: usize) -> Option<(String, usize)> {
    let is_end = |token: &Token| {
        token.is_symbol(b';') || token.is_word(text, "YIELD") || token.is_word(text, "WHERE")
    };
    let name = match (kind, tokens.get(end).filter(|token| !is_end(token))) {
        ("DEFAULT" | "HOME", None) => return Some(("true".to_owned(), end)),
        ("", None) => return Some(("null".to_owned(), end)),
        ("", Some(name)) => name,
        _ => return None,
    };
    let written = text.get(name.span.clone()).unwrap_or_default();
    match name.kind {
        TokenKind::Quoted => {
            let name = written.trim_matches('`').replace("``", "`");
            let name = name.replace('\\', "\\\\").replace('\'', "\\'");
            Some((format!("'{name}'"), end + 1))
        }
        TokenKind::Symbol(b'$') => {
            let parameter = tokens.get(end + 1)?;
            let whole = text.get(name.span.start..parameter.span.end)?;
            Some((whole.to_owned(), end + 2))
        }
        TokenKind::Word => {
            // A name without quotes may have dots and hyphens.
            let mut last = end;
            let is_part =
                |token: &&Token| token.is_name() || token.is_symbol(b'.') || token.is_symbol(b'-');
            while let Some(next) = tokens.get(last + 1).filter(is_part)
                && next.span.start == tokens.get(last)?.span.end
            {
                last += 1;
            }
            let whole = text.get(name.span.start..tokens.get(last)?.span.end)?;
            Some((format!("'{whole}'"), last + 1))
        }
        _ => None,
    }
}

fn index_types(kind: &str) -> Option<String> {
    match kind {
        "" | "ALL" => Some("null".to_owned()),
        "RANGE" | "FULLTEXT" | "VECTOR" | "TEXT" | "POINT" | "LOOKUP" | "BTREE" => {
            Some(format!("['{kind}']"))
        }
        _ => None,
    }
}

fn constraint_types(kind: &str) -> Option<String> {
    let kind = kind.replace("RELATIONSHIP", "REL").replace("PROPERTY ", "");
    let kind = kind.replace("EXISTENCE", "EXIST").replace("UNIQUENESS", "UNIQUE");
    let types: &[&str] = match kind.as_str() {
        "" | "ALL" => return Some("null".to_owned()),
        "UNIQUE" => &["UNIQUENESS", "RELATIONSHIP_UNIQUENESS"],
        "NODE UNIQUE" => &["UNIQUENESS"],
        "REL UNIQUE" => &["RELATIONSHIP_UNIQUENESS"],
        "EXIST" => &["NODE_PROPERTY_EXISTENCE", "RELATIONSHIP_PROPERTY_EXISTENCE"],
        "NODE EXIST" => &["NODE_PROPERTY_EXISTENCE"],
        "REL EXIST" => &["RELATIONSHIP_PROPERTY_EXISTENCE"],
        "KEY" => &["NODE_KEY", "RELATIONSHIP_KEY"],
        "NODE KEY" => &["NODE_KEY"],
        "REL KEY" => &["RELATIONSHIP_KEY"],
        // There are none of these.
        "PROPERTY TYPE" | "TYPE" | "NODE TYPE" | "REL TYPE" => &[],
        _ => return None,
    };
    let types: Vec<String> = types.iter().map(|kind| format!("'{kind}'")).collect();
    Some(format!("[{}]", types.join(", ")))
}

/// Names in backticks, because some are words of the language.
fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names = names.into_iter().map(|name| format!("`{name}`"));
    names.collect::<Vec<_>>().join(", ")
}

/// The column names in `YIELD name, type AS t WHERE …`.
fn yielded(text: &str, rest: &[Token]) -> String {
    let ends = ["WHERE", "ORDER", "SKIP", "OFFSET", "LIMIT"];
    let is_end = |token: &Token| ends.iter().any(|word| token.is_word(text, word));
    let items = rest.iter().skip(1).take_while(|it| !is_end(it));
    let mut names: Vec<&str> = Vec::new();
    let mut is_new = true;
    for token in items {
        let word = text.get(token.span.clone()).unwrap_or_default();
        match token.kind {
            TokenKind::Symbol(b',') => is_new = true,
            _ if token.is_word(text, "AS") => {
                names.pop();
                is_new = true;
            }
            _ if is_new => {
                names.push(word);
                is_new = false;
            }
            _ => {}
        }
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::rewrite::rewrite;
    use super::super::scan::tokens;

    fn new(text: &str) -> String {
        rewrite(text, &tokens(text)).text.into_owned()
    }

    #[test]
    fn what_is_shown_is_called() {
        assert_eq!(
            new("SHOW PROCEDURES"),
            "CALL show.procedures(true) YIELD `name`, `description`, `mode`, `worksOnSystem`"
        );
        assert_eq!(
            new("show functions executable by current user where name = 'a';"),
            "CALL show.functions(true) YIELD `name`, `category`, `description` where name = 'a' \
             RETURN `name`, `category`, `description`;"
        );
        assert_eq!(new("SHOW INDEX YIELD name"), "CALL show.indexes(null) YIELD name");
        assert_eq!(
            new("SHOW RANGE INDEXES YIELD name AS n, type WHERE n = 'a'"),
            "CALL show.indexes(['RANGE']) YIELD name AS n, type WHERE n = 'a' RETURN n, type"
        );
        assert_eq!(
            new("SHOW CURRENT USER YIELD * WHERE user = 'a';"),
            "CALL show.user() YIELD `user`, `roles`, `passwordChangeRequired`, `suspended`, `home` \
             WHERE user = 'a' RETURN `user`, `roles`, `passwordChangeRequired`, `suspended`, \
             `home`;"
        );
        assert_eq!(
            new("SHOW INDEXES YIELD name AS n, type ORDER BY n LIMIT 2"),
            "CALL show.indexes(null) YIELD name AS n, type WITH * ORDER BY n LIMIT 2 RETURN n, type"
        );
        assert_eq!(
            new("SHOW FUNCTIONS YIELD name WHERE name = 'a' RETURN collect(name) AS all LIMIT 1"),
            "CALL show.functions(true) YIELD name WHERE name = 'a' RETURN collect(name) AS all \
             LIMIT 1"
        );
    }

    #[test]
    fn what_is_asked_for_is_an_argument() {
        let call = |text: &str| {
            let new = new(&format!("{text} YIELD name"));
            new.trim_end_matches(" YIELD name").to_owned()
        };
        assert_eq!(call("SHOW DATABASES"), "CALL show.databases(null)");
        assert_eq!(call("SHOW HOME DATABASE"), "CALL show.databases(true)");
        assert_eq!(call("SHOW DATABASE my-log.a"), "CALL show.databases('my-log.a')");
        assert_eq!(call("SHOW DATABASE `it's`"), "CALL show.databases('it\\'s')");
        assert_eq!(call("SHOW DATABASE $name"), "CALL show.databases($name)");
        assert_eq!(call("SHOW ALL CONSTRAINTS"), "CALL show.constraints(null)");
        assert_eq!(
            call("SHOW RELATIONSHIP PROPERTY EXISTENCE CONSTRAINTS"),
            "CALL show.constraints(['RELATIONSHIP_PROPERTY_EXISTENCE'])"
        );
        assert_eq!(call("SHOW PROPERTY TYPE CONSTRAINTS"), "CALL show.constraints([])");
        assert_eq!(call("SHOW USER DEFINED FUNCTIONS"), "CALL show.functions(false)");
        for other in ["SHOW USERS", "SHOW SLOW INDEXES", "RETURN 1 AS show", "SHOW", "SHOW USER"] {
            assert_eq!(new(other), other);
        }
    }
}
