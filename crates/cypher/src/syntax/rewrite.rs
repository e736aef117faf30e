//! Rewrites syntax that the parser lacks to equivalent syntax. Positions in the new text map back
//! to the old one.

use std::borrow::Cow;

use super::dynamic_labels;
use super::scan::{Token, TokenKind};

/// A text for the parser.
pub(super) struct RewrittenText<'t> {
    /// What is parsed.
    pub(super) text: Cow<'t, str>,
    /// Whether `EXPLAIN` preceded it.
    pub(super) explain: bool,
    /// Where the texts diverge: from this byte of the new text on, it is this many bytes longer.
    shifts: Vec<(usize, isize)>,
}

impl RewrittenText<'_> {
    /// The byte of the text as written that corresponds to a byte of the rewritten text.
    pub(super) fn original(&self, at: usize) -> usize {
        let shift =
            self.shifts.iter().rev().find(|(from, _)| *from <= at).map_or(0, |shift| shift.1);
        at.checked_add_signed(-shift).unwrap_or(0)
    }
}

/// A range of the old text and its replacement.
pub(super) struct Edit {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) new: String,
}

/// Removes `EXPLAIN`, `PROFILE` and `USING INDEX`, and rewrites `OFFSET`, `||`, `{,3}`, `-->+`,
/// `CALL (x) { … }`, calls that end a subquery, `REMOVE n[key]`, labels from expressions, line
/// breaks in strings and underscores in numbers.
pub(super) fn rewrite<'t>(text: &'t str, tokens: &[Token]) -> RewrittenText<'t> {
    let mut edits = Vec::new();
    let mut explain = false;
    if let Some(first) = tokens.first() {
        explain = first.is_word(text, "EXPLAIN");
        if explain || first.is_word(text, "PROFILE") {
            let blanks = " ".repeat(first.span.len());
            edits.push(Edit { from: first.span.start, to: first.span.end, new: blanks });
        }
    }
    super::show::rewrite_show(text, tokens, &mut edits);
    for (index, token) in tokens.iter().enumerate() {
        let next = tokens.get(index + 1);
        if token.is_word(text, "OFFSET") && is_amount(next) && !is_name_place(tokens, index) {
            let new = "SKIP  ".to_owned();
            edits.push(Edit { from: token.span.start, to: token.span.end, new });
        } else if token.is_symbol(b'|') && next.is_some_and(|next| is_after(token, next, b'|')) {
            edits.push(Edit {
                from: token.span.start,
                to: token.span.end + 1,
                new: "+ ".to_owned(),
            });
        } else if token.is_symbol(b'{') && is_upper_bound(tokens.get(index + 1..)) {
            let at = token.span.end;
            edits.push(Edit { from: at, to: at, new: "0".to_owned() });
        } else if let Some(bounds) = quantifier(tokens, index) {
            let new = bounds.to_owned();
            edits.push(Edit { from: token.span.start, to: token.span.end, new });
        } else if token.is_word(text, "USING") {
            hint(text, tokens, index, &mut edits);
        } else if token.is_word(text, "CALL") && !is_name_place(tokens, index) {
            if next.is_some_and(|token| token.is_symbol(b'(')) {
                scoped_call(text, tokens, index + 1, &mut edits);
            }
            last_call(tokens, index + 1, &mut edits);
        } else if token.kind == TokenKind::Word && is_map_projection(tokens, index) {
            let name = text.get(token.span.clone()).unwrap_or_default();
            let new = format!("`{name}`");
            edits.push(Edit { from: token.span.start, to: token.span.end, new });
        } else if token.is_word(text, "REMOVE") && !is_name_place(tokens, index) {
            super::removal::rewrite_removal(text, tokens, index, &mut edits);
        } else if token.is_word(text, "SET") && !is_name_place(tokens, index) {
            dynamic_labels::rewrite_set(text, tokens, index, &mut edits);
        } else if token.is_symbol(b'$') {
            dynamic_labels::rewrite_quantity(text, tokens, index, &mut edits);
        } else {
            literal(text, token, &mut edits);
        }
    }
    edits.sort_by_key(|edit| edit.from);
    apply(text, explain, &edits)
}

/// Line breaks in a string, which the parser takes for its end, and underscores between the digits
/// of a number.
fn literal(text: &str, token: &Token, edits: &mut Vec<Edit>) {
    let written = text.get(token.span.clone()).unwrap_or_default();
    let mut replace = |at: usize, new: &str| {
        let from = token.span.start + at;
        edits.push(Edit { from, to: from + 1, new: new.to_owned() });
    };
    match token.kind {
        TokenKind::String => {
            for (at, letter) in written.match_indices(['\n', '\r']) {
                // A backslash before the line break belongs to it.
                let before = written.get(..at).unwrap_or_default();
                let escaped = before.len() - before.trim_end_matches('\\').len();
                if escaped % 2 == 0 {
                    replace(at, if letter == "\n" { "\\n" } else { "\\r" });
                }
            }
        }
        TokenKind::Number => {
            let is_digit = |it: &u8| it.is_ascii_alphanumeric();
            let follows = |at: usize| written.as_bytes().get(at + 1).is_some_and(is_digit);
            let only_between = !written.ends_with('_') && !written.contains("__");
            for (at, _) in written.match_indices('_').filter(|_| only_between) {
                if follows(at) {
                    replace(at, "");
                }
            }
        }
        _ => {}
    }
}

/// Whether these tokens continue a quantifier without a lower bound: the parser takes `{,3}` for
/// `{3,}`.
fn is_upper_bound(rest: Option<&[Token]>) -> bool {
    let Some([comma, behind, rest @ ..]) = rest else { return false };
    let is_end = |token: &Token| token.is_symbol(b'}');
    let is_bound = behind.kind == TokenKind::Number && rest.first().is_some_and(is_end);
    comma.is_symbol(b',') && (is_bound || is_end(behind))
}

/// The bounds that a sign between a relationship and a node stands for: `-->+(n)`, `-[r]-*(n)`.
fn quantifier(tokens: &[Token], index: usize) -> Option<&'static str> {
    let is = |at: usize, symbol: u8| tokens.get(at).is_some_and(|token| token.is_symbol(symbol));
    let bounds = match tokens.get(index)?.kind {
        TokenKind::Symbol(b'+') => "{1,}",
        TokenKind::Symbol(b'*') => "{0,}",
        _ => return None,
    };
    let before = index.checked_sub(2)?;
    // An arrow is nothing else, and no list is subtracted from.
    let is_arrow = is(before, b'-') && is(before + 1, b'>');
    let is_line = is(before, b']') && is(before + 1, b'-') && is_detail(tokens, before);
    (is(index + 1, b'(') && (is_arrow || is_line)).then_some(bounds)
}

/// Whether the bracket that ends here begins after a line: `-[…]`.
fn is_detail(tokens: &[Token], end: usize) -> bool {
    const MOST_TOKENS: usize = 1_000;
    let mut depth = 0_usize;
    for at in (1..=end).rev().take(MOST_TOKENS) {
        match tokens.get(at).map(|token| token.kind) {
            Some(TokenKind::Symbol(b']')) => depth += 1,
            Some(TokenKind::Symbol(b'[')) if depth == 1 => {
                return tokens.get(at - 1).is_some_and(|token| token.is_symbol(b'-'));
            }
            Some(TokenKind::Symbol(b'[')) => depth -= 1,
            _ => {}
        }
    }
    false
}

/// Whether a symbol directly follows a token.
fn is_after(token: &Token, next: &Token, symbol: u8) -> bool {
    next.is_symbol(symbol) && next.span.start == token.span.end
}

/// `USING INDEX n:Label(key)`, `USING SCAN n:Label`: a hint for another planner, replaced by
/// blanks.
fn hint(text: &str, tokens: &[Token], using: usize, edits: &mut Vec<Edit>) {
    let rest = tokens.get(using..).unwrap_or_default();
    let Some(kind) = rest.get(1) else { return };
    let scan = kind.is_word(text, "SCAN");
    let hints = ["INDEX", "RANGE", "TEXT", "POINT"];
    if !scan && !hints.iter().any(|word| kind.is_word(text, word)) {
        return;
    }
    let is_end = |token: &Token| if scan { token.is_symbol(b':') } else { token.is_symbol(b')') };
    let end = rest.iter().position(is_end).and_then(|at| rest.get(at + usize::from(scan)));
    if let (Some(first), Some(last)) = (rest.first(), end) {
        let blanks = " ".repeat(last.span.end - first.span.start);
        edits.push(Edit { from: first.span.start, to: last.span.end, new: blanks });
    }
}

/// Whether a token can follow `OFFSET`: a number or a parameter.
fn is_amount(token: Option<&Token>) -> bool {
    token.is_some_and(|token| token.kind == TokenKind::Number || token.is_symbol(b'$'))
}

/// Whether a word in this position is a name: after a dot, a colon or a dollar.
fn is_name_place(tokens: &[Token], index: usize) -> bool {
    let before = index.checked_sub(1).and_then(|index| tokens.get(index));
    before.is_some_and(|token| matches!(token.kind, TokenKind::Symbol(b'.' | b':' | b'$')))
}

/// `CALL (x, y) { A UNION B }` becomes `CALL { WITH x, y A UNION WITH x, y B }`.
fn scoped_call(text: &str, tokens: &[Token], open: usize, edits: &mut Vec<Edit>) {
    let rest = tokens.get(open..).unwrap_or_default();
    let Some(close) = rest.iter().position(|token| token.is_symbol(b')')) else { return };
    let inside = rest.get(1..close).unwrap_or_default();
    let is_all = matches!(inside, [all] if all.is_symbol(b'*'));
    let is_list = inside.iter().all(|token| token.is_name() || token.is_symbol(b','));
    let Some(brace) = rest.get(close + 1).filter(|token| token.is_symbol(b'{')) else { return };
    let Some(first) = rest.first().filter(|_| is_list || is_all) else { return };
    let import = match (inside.first(), inside.last()) {
        (Some(from), Some(to)) => {
            let names = text.get(from.span.start..to.span.end).unwrap_or_default();
            format!(" WITH {names} ")
        }
        _ => String::new(),
    };
    edits.push(Edit { from: first.span.start, to: brace.span.end, new: format!("{{{import}") });
    let mut depth = 0_usize;
    let mut body = rest.get(close + 1..).unwrap_or_default().iter().peekable();
    while let Some(token) = body.next() {
        match token.kind {
            TokenKind::Symbol(b'{') => depth += 1,
            TokenKind::Symbol(b'}') if depth <= 1 => return,
            TokenKind::Symbol(b'}') => depth -= 1,
            _ if depth == 1 && token.is_word(text, "UNION") => {
                let kind = body
                    .next_if(|next| next.is_word(text, "ALL") || next.is_word(text, "DISTINCT"));
                let at = kind.unwrap_or(token).span.end;
                edits.push(Edit { from: at, to: at, new: import.clone() });
            }
            _ => {}
        }
    }
}

/// A call that ends a subquery, `{ … CALL p(x) }` or `{ … CALL { … } }`: the parser requires a
/// clause after it, and gets one that does nothing.
fn last_call(tokens: &[Token], call: usize, edits: &mut Vec<Edit>) {
    let is = |at: usize, symbol| tokens.get(at).is_some_and(|token| token.is_symbol(symbol));
    let is_part = |token: &Token| token.is_name() || token.is_symbol(b'.');
    let name = tokens.iter().skip(call).take_while(|token| is_part(token)).count();
    let opened = match name {
        0 if is(call, b'(') => end_of_group(tokens, call).map(|close| close + 1),
        _ => Some(call + name),
    };
    let Some(end) = opened.and_then(|open| end_of_group(tokens, open)) else { return };
    if is(end + 1, b'}') {
        let at = tokens[end].span.end;
        edits.push(Edit { from: at, to: at, new: " FOREACH (_ IN [] | CREATE ())".to_owned() });
    }
}

/// Where the group ends whose bracket opens here.
fn end_of_group(tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            TokenKind::Symbol(b'(' | b'[' | b'{') => depth += 1,
            TokenKind::Symbol(b')' | b']' | b'}') => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return (at > open).then_some(at);
        }
    }
    None
}

/// Whether a word is the variable of a map projection, `node { .* }`: the parser takes some words
/// for nothing else than its own there.
fn is_map_projection(tokens: &[Token], index: usize) -> bool {
    let is = |at: usize, symbol| tokens.get(at).is_some_and(|token| token.is_symbol(symbol));
    is(index + 1, b'{') && is(index + 2, b'.')
}

fn apply<'t>(text: &'t str, explain: bool, edits: &[Edit]) -> RewrittenText<'t> {
    if edits.is_empty() {
        return RewrittenText { text: Cow::Borrowed(text), explain, shifts: Vec::new() };
    }
    let mut new = String::with_capacity(text.len() + 64);
    let mut shifts = Vec::new();
    let mut at = 0;
    for edit in edits {
        new.push_str(text.get(at..edit.from).unwrap_or_default());
        new.push_str(&edit.new);
        at = edit.to;
        shifts.push((new.len(), new.len() as isize - at as isize));
    }
    new.push_str(text.get(at..).unwrap_or_default());
    RewrittenText { text: Cow::Owned(new), explain, shifts }
}

#[cfg(test)]
mod tests {
    use super::super::scan::tokens;
    use super::rewrite;

    #[test]
    fn newer_syntax_is_put_into_older_words() {
        let new = |text: &str| rewrite(text, &tokens(text)).text.into_owned();
        assert_eq!(new("EXPLAIN RETURN 1"), "        RETURN 1");
        assert_eq!(new("RETURN 1 OFFSET 2"), "RETURN 1 SKIP   2");
        assert_eq!(new("RETURN n.offset"), "RETURN n.offset");
        assert_eq!(
            new("CALL (x) { RETURN 1 AS a UNION ALL RETURN 2 AS a } RETURN a"),
            "CALL { WITH x  RETURN 1 AS a UNION ALL WITH x  RETURN 2 AS a } RETURN a"
        );
        assert_eq!(new("CALL () { RETURN 1 AS a } RETURN a"), "CALL { RETURN 1 AS a } RETURN a");
        assert_eq!(
            new("CALL (*) { RETURN a AS b } RETURN node {.*}, m{.a, b: 1}"),
            "CALL { WITH *  RETURN a AS b } RETURN `node` {.*}, `m`{.a, b: 1}"
        );
        assert_eq!(new("CALL db.labels()"), "CALL db.labels()");
        assert_eq!(
            new("CALL { WITH n CALL a.b(f(n), {c: 1}) } CALL a.b({})"),
            "CALL { WITH n CALL a.b(f(n), {c: 1}) FOREACH (_ IN [] | CREATE ()) } CALL a.b({})"
        );
        assert_eq!(
            new("CALL (n) { MATCH (m) CALL (m) { SET m.a = 1 } }"),
            "CALL { WITH n  MATCH (m) CALL { WITH m  SET m.a = 1 } FOREACH (_ IN [] | CREATE ()) }"
        );
        assert_eq!(new("RETURN 'a'||'b'"), "RETURN 'a'+ 'b'");
        assert_eq!(new("RETURN 'a\nb\r\n', \"\n\""), "RETURN 'a\\nb\\r\\n', \"\\n\"");
        assert_eq!(
            new("RETURN 1_000, 0x_FF, 1.5_0, 1_, 1__0"),
            "RETURN 1000, 0xFF, 1.50, 1_, 1__0"
        );
        assert_eq!(
            new("MATCH (n) REMOVE n.a, n['b'], n:C, (n)[k] RETURN n"),
            "MATCH (n) REMOVE n.a SET n['b'] = null REMOVE n:C SET (n)[k] = null RETURN n"
        );
        assert_eq!(new("REMOVE n[$k]"), "SET n[$k] = null");
        assert_eq!(
            new("SET n:A:$(f(x)) , m.a = 1, m:B ON MATCH SET n:`a'b`&$($b||'c') RETURN n:$(x)"),
            "SET n[['+']] = ['A', (f(x))] , m.a = 1, m:B ON MATCH SET n[['+']] = ['a\\'b', \
             ($b+ 'c')] RETURN n:$(x)"
        );
        assert_eq!(
            new("REMOVE n.a, n:A:$(x), n:B RETURN n"),
            "REMOVE n.a SET n[['-']] = ['A', (x)] REMOVE n:B RETURN n"
        );
        assert_eq!(
            new("MATCH (n:$all($all)|$any([f(x), $any])) RETURN $any"),
            "MATCH (n:$($all)|$({any: [f(x), $any]})) RETURN $any"
        );
        assert_eq!(new("REMOVE n.a, n:B"), "REMOVE n.a, n:B");
        assert_eq!(new("(a)-->{,3}(b)-->{ , }(c {d: 1})"), "(a)-->{0,3}(b)-->{0 , }(c {d: 1})");
        assert_eq!(
            new("(a)-->+(b)<-[:R]-*(c)-[r]->*(d)-[[1][0]]-+(e)"),
            "(a)-->{1,}(b)<-[:R]-{0,}(c)-[r]->{0,}(d)-[[1][0]]-{1,}(e)"
        );
        for expression in ["RETURN l[0]-+(1)", "RETURN (a)--+(b)", "RETURN [1]-*(2)"] {
            assert_eq!(new(expression), expression);
        }
        let hinted = new("MATCH (n:A) USING INDEX n:A(b) WHERE n.b = 1 USING SCAN n:A RETURN n");
        let words: Vec<&str> = hinted.split_whitespace().collect();
        assert_eq!(words.join(" "), "MATCH (n:A) WHERE n.b = 1 RETURN n");
    }

    #[test]
    fn places_lead_back() {
        let text = "CALL (x) { RETURN y AS a } RETURN b";
        let new = rewrite(text, &tokens(text));
        for name in ["y", "b"] {
            let place = new.text.rfind(name).map(|at| new.original(at));
            assert_eq!(place, text.rfind(name));
        }
    }
}
