//! Checks what the parser ignores silently. It is lenient: its AST omits unexpected clauses and
//! repairs broken arrows and missing commas. Its concrete syntax tree omits nothing, so the checks
//! use that.

use decypher::Parse;
use decypher::syntax::{SyntaxElement, SyntaxKind, SyntaxNode, SyntaxToken};

use SyntaxKind::{
    RANGE_LITERAL as RANGE, RELATIONSHIP_DETAIL, RELATIONSHIP_QUANTIFIER as QUANTIFIER,
};

use super::{Source, scan};
use crate::error::{Detail, Error, ErrorKind};

/// The message for a word that starts no clause.
const NO_CLAUSE: &str = "expected a clause such as MATCH, CREATE or RETURN";

/// Options of Neo4j's planner that can precede a statement.
const OPTIONS: [&str; 10] = [
    "runtime",
    "planner",
    "replan",
    "connectComponentsPlanner",
    "updateStrategy",
    "expressionEngine",
    "operatorEngine",
    "interpretedPipesFallback",
    "eagerAnalyzer",
    "statefulShortestPlanningMode",
];

/// An objection and its byte position in the parser's text.
type Objection = (usize, Detail, String);

/// The first objection to the text, unless the parser has an earlier one.
pub(super) fn objection(parse: &Parse, source: &Source<'_>) -> Option<Error> {
    let mut judge = Judge { text: source.text, broken: !parse.errors.is_empty(), found: None };
    for node in parse.tree.descendants() {
        judge.node(&node);
    }
    judge.rest(usize::from(parse.tree.text_range().end()));
    let (at, detail, message) = judge.found?;
    if parse.errors.first().is_some_and(|error| error.span.start <= at) {
        return None;
    }
    Some(source.at(Error::compile(ErrorKind::SyntaxError, detail, message), at))
}

/// The text with every `FINISH` after an update blanked: it has no effect there, but the parser's
/// AST would omit the updates.
pub(super) fn without_idle_finish(parse: &Parse, text: &str) -> Option<String> {
    let mut new = None;
    for node in parse.tree.descendants().filter(|node| node.kind() == SyntaxKind::FINISH_CLAUSE) {
        if node.prev_sibling().is_some_and(|before| is_update(before.kind())) {
            let range =
                usize::from(node.text_range().start())..usize::from(node.text_range().end());
            let blanks = " ".repeat(range.len());
            new.get_or_insert_with(|| text.to_owned()).replace_range(range, &blanks);
        }
    }
    new
}

struct Judge<'t> {
    text: &'t str,
    /// Whether the parser objects to something and may have stopped within a pattern.
    broken: bool,
    /// The first in the text.
    found: Option<Objection>,
}

impl Judge<'_> {
    fn object(&mut self, at: usize, detail: Detail, message: String) {
        if self.found.as_ref().is_none_or(|(before, ..)| at < *before) {
            self.found = Some((at, detail, message));
        }
    }

    /// Objects to the token at this position.
    fn unexpected(&mut self, at: usize, expected: &str) {
        let rest = self.text.get(at..).unwrap_or_default();
        let message = match scan::tokens(prefix(rest)).first() {
            Some(token) => {
                let word = rest.get(token.span.clone()).unwrap_or_default();
                format!("Invalid input '{word}': {expected}")
            }
            None => format!("Unexpected end of input: {expected}"),
        };
        self.object(at, Detail::UnexpectedSyntax, message);
    }

    /// Text after the end of the tree: the parser stops where no clause begins.
    fn rest(&mut self, end: usize) {
        let rest = self.text.get(end..).unwrap_or_default();
        if let Some(token) = scan::tokens(rest).iter().find(|token| !token.is_symbol(b';')) {
            self.unexpected(end + token.span.start, NO_CLAUSE);
        }
    }

    fn node(&mut self, node: &SyntaxNode) {
        let at = start(node);
        match node.kind() {
            SyntaxKind::SOURCE_FILE => self.file(node),
            SyntaxKind::STATEMENT | SyntaxKind::UNION => self.clauses(node),
            SyntaxKind::CREATE_INDEX
            | SyntaxKind::CREATE_CONSTRAINT
            | SyntaxKind::DROP_INDEX
            | SyntaxKind::DROP_CONSTRAINT
            | SyntaxKind::SCHEMA_COMMAND
            | SyntaxKind::IN_QUERY_CALL => self.command(node),
            SyntaxKind::SHOW_CLAUSE => {
                let message = "SHOW is supported for indexes, constraints, databases, procedures, functions and the current user, alone in its statement";
                self.object(at, Detail::Unsupported, message.to_owned());
            }
            SyntaxKind::USE_CLAUSE => {
                let message =
                    "USE is not supported: the database is chosen by the address of the request";
                self.object(at, Detail::Unsupported, message.to_owned());
            }
            SyntaxKind::PATTERN => self.commas(node),
            SyntaxKind::RELATIONSHIP_PATTERN => {
                self.arrow(node);
                self.one_length(node);
            }
            SyntaxKind::RANGE_LITERAL | SyntaxKind::RELATIONSHIP_QUANTIFIER => self.bounds(node),
            SyntaxKind::NODE_PATTERN if first(node) != Some(SyntaxKind::L_PAREN) => {
                self.unexpected(at, "expected a node in brackets, such as (n)");
            }
            SyntaxKind::MERGE_ACTION => self.merge_action(node),
            SyntaxKind::FOREACH_CLAUSE => self.foreach(node),
            SyntaxKind::FINISH_CLAUSE => self.finish(node),
            _ => {}
        }
        self.alias(node);
        self.last_clause(node);
    }

    /// Words before a statement, and commands that are not queries.
    fn file(&mut self, file: &SyntaxNode) {
        let mut words = Vec::new();
        for child in significant(file) {
            match child {
                SyntaxElement::Node(node) if node.kind() != SyntaxKind::STATEMENT => {
                    self.command(&node);
                }
                SyntaxElement::Token(token) if token.kind() != SyntaxKind::SEMICOLON => {
                    words.push(token);
                }
                _ => {}
            }
        }
        self.options(&words);
    }

    /// `CYPHER 5 runtime=pipelined`: options for another planner; those that Neo4j knows are
    /// ignored.
    fn options(&mut self, words: &[SyntaxToken]) {
        let is = |word: &SyntaxToken, known: &[&str]| {
            known.iter().any(|known| word.text().eq_ignore_ascii_case(known))
        };
        let mut words = words.iter().peekable();
        match words.next() {
            Some(first) if is(first, &["CYPHER"]) => {
                words.next_if(|word| is(word, &["5", "25"]));
            }
            Some(first) => return self.unexpected(start_of(first), NO_CLAUSE),
            None => return,
        }
        while let Some(word) = words.next() {
            let sign = words.next_if(|word| word.kind() == SyntaxKind::EQ);
            let value = sign.and_then(|_| words.next());
            if value.is_none() || !is(word, &OPTIONS) {
                let expected = "expected an option such as runtime=slotted, or a clause";
                return self.unexpected(start_of(word), expected);
            }
        }
    }

    fn clauses(&mut self, query: &SyntaxNode) {
        for clause in query.children() {
            let kind = clause.kind();
            let known = is_update(kind) || is_reading(kind) || is_judged_elsewhere(kind);
            if !known {
                self.command(&clause);
            }
        }
    }

    /// A command on the schema or on databases among clauses or other statements.
    fn command(&mut self, node: &SyntaxNode) {
        let at = start(node);
        let is_yield = node.kind() == SyntaxKind::IN_QUERY_CALL;
        if is_yield || node.kind() == SyntaxKind::ERROR {
            return self.unexpected(at, NO_CLAUSE);
        }
        let text = self.text.get(at..).unwrap_or_default();
        let tokens = scan::tokens(prefix(text));
        let words = tokens.iter().take(2).filter_map(|token| text.get(token.span.clone()));
        let words = words.collect::<Vec<_>>().join(" ").to_ascii_uppercase();
        let message = if words.contains("DATABASE") {
            format!("Invalid input '{words}': databases are not managed by Cypher here")
        } else {
            format!("Invalid input '{words}': a schema command must be a statement of its own")
        };
        self.object(at, Detail::UnexpectedSyntax, message);
    }

    /// Paths of a pattern without a comma between them.
    fn commas(&mut self, pattern: &SyntaxNode) {
        let is_quantified =
            pattern.descendants().any(|it| it.kind() == SyntaxKind::QUANTIFIED_PATH_PATTERN);
        let mut after_path = false;
        for child in significant(pattern).take_while(|_| !is_quantified) {
            let is_path = child.kind() == SyntaxKind::PATTERN_PART;
            if is_path && after_path {
                let at = usize::from(child.text_range().start());
                self.unexpected(at, "expected a comma or a relationship before the next node");
            }
            after_path = is_path;
        }
    }

    /// `(a)->(b)`, `(a)-[r](b)` and the like.
    fn arrow(&mut self, relationship: &SyntaxNode) {
        let mut arrow = String::new();
        for child in significant(relationship) {
            arrow.push_str(match child.kind() {
                SyntaxKind::LT | SyntaxKind::ARROW_LEFT => "<",
                SyntaxKind::GT | SyntaxKind::ARROW_RIGHT => ">",
                SyntaxKind::MINUS | SyntaxKind::DASH => "-",
                SyntaxKind::RELATIONSHIP_DETAIL => "[]",
                _ => "",
            });
        }
        let bare = arrow.replace("[]", "");
        let whole = ["--", "-->", "<--", "<-->"].contains(&bare.as_str())
            && (arrow == bare || arrow.contains("-[]-"));
        if !whole && !self.broken {
            let message = format!(
                "Invalid input '{}': expected a relationship such as -->, <--, -- or -[r]->",
                arrow.replace("[]", "[…]")
            );
            self.object(start(relationship), Detail::UnexpectedSyntax, message);
        }
    }

    /// `-[*2]->{3}`: the parser's AST contains both lengths, but one would be ignored.
    fn one_length(&mut self, relationship: &SyntaxNode) {
        let quantifier = relationship.children().find(|it| it.kind() == QUANTIFIER);
        let details = relationship.children().filter(|it| it.kind() == RELATIONSHIP_DETAIL);
        let range = details.flat_map(|it| it.children()).find(|it| it.kind() == RANGE);
        if let (Some(quantifier), Some(_)) = (quantifier, range) {
            let message =
                "Invalid input '{': a relationship can have one length, either after * or in {}";
            self.object(start(&quantifier), Detail::InvalidRelationshipPattern, message.to_owned());
        }
    }

    /// The bounds of a length; bounds that are too large would be dropped.
    fn bounds(&mut self, length: &SyntaxNode) {
        let tokens = length.descendants_with_tokens().filter_map(SyntaxElement::into_token);
        let mut bounds = Vec::new();
        for token in tokens.filter(|token| token.kind() == SyntaxKind::INTEGER) {
            let Some(bound) = bound(token.text()) else {
                let message = format!(
                    "Invalid input '{}': a length must be a number from 0 to {}",
                    token.text(),
                    u32::MAX
                );
                let at = start_of(&token);
                return self.object(at, Detail::InvalidRelationshipPattern, message);
            };
            bounds.push(bound);
        }
        if let ([from, to], QUANTIFIER) = (&bounds[..], length.kind())
            && from > to
        {
            let message = format!(
                "A quantifier's upper bound must not be below its lower one: {from} > {to}"
            );
            self.object(start(length), Detail::InvalidRelationshipPattern, message);
        }
    }

    /// `ON CREATE SET …`, `ON MATCH SET …`
    fn merge_action(&mut self, action: &SyntaxNode) {
        let has = |kind| significant(action).any(|child| child.kind() == kind);
        let one = has(SyntaxKind::KW_MATCH) != has(SyntaxKind::KW_CREATE);
        if !one || !has(SyntaxKind::SET_ITEM) {
            self.unexpected(
                start(action),
                "expected CREATE SET or MATCH SET with an assignment after ON",
            );
        }
    }

    fn foreach(&mut self, foreach: &SyntaxNode) {
        let mut updates = 0;
        for clause in foreach.children() {
            updates += usize::from(is_update(clause.kind()));
            if clause.kind() == SyntaxKind::MATCH_CLAUSE {
                self.unexpected(start(&clause), "FOREACH accepts only updating clauses");
            }
        }
        if updates == 0 {
            let message = "FOREACH needs an updating clause after the bar";
            self.object(start(foreach), Detail::UnexpectedSyntax, message.to_owned());
        }
    }

    /// Updates before a `FINISH` with something else in between, which the parser's AST would omit.
    fn finish(&mut self, finish: &SyntaxNode) {
        // A `FINISH` that is not the last clause is refused anyway, and there may be very many.
        if finish.next_sibling().is_some_and(|next| next.kind() != SyntaxKind::UNION) {
            return;
        }
        let before = std::iter::successors(finish.prev_sibling(), SyntaxNode::prev_sibling);
        let kinds: Vec<SyntaxKind> = before
            .map(|clause| clause.kind())
            .take_while(|kind| *kind != SyntaxKind::WITH_CLAUSE)
            .collect();
        let directly = kinds.first().is_some_and(|kind| is_update(*kind));
        if !directly && kinds.iter().any(|kind| is_update(*kind)) {
            let message = "WITH is required between an updating clause and a reading clause";
            self.object(start(finish), Detail::InvalidClauseComposition, message.to_owned());
        }
    }

    /// `AS` without a name after it.
    fn alias(&mut self, node: &SyntaxNode) {
        if matches!(node.kind(), SyntaxKind::PROJECTION_ITEM | SyntaxKind::YIELD_ITEM)
            && let Some(SyntaxElement::Token(last)) = significant(node).last()
            && last.kind() == SyntaxKind::KW_AS
        {
            self.unexpected(usize::from(last.text_range().start()), "expected a name after AS");
        }
    }

    /// `RETURN` and `FINISH` followed by another clause.
    fn last_clause(&mut self, node: &SyntaxNode) {
        let word = match node.kind() {
            SyntaxKind::RETURN_CLAUSE => "RETURN",
            SyntaxKind::FINISH_CLAUSE => "FINISH",
            _ => return,
        };
        let Some(next) = node.next_sibling() else { return };
        let kind = next.kind();
        if is_update(kind) || is_reading(kind) {
            let at = start(&next);
            let text = self.text.get(at..).unwrap_or_default();
            let first = scan::tokens(prefix(text)).into_iter().next();
            let found = first.and_then(|token| text.get(token.span)).unwrap_or_default();
            let message = format!("Invalid input '{found}': {word} must be the last clause");
            self.object(at, Detail::InvalidClauseComposition, message);
        }
    }
}

/// The number in a bound of a length.
fn bound(written: &str) -> Option<u32> {
    let written = written.replace('_', "").to_ascii_lowercase();
    let (digits, radix) = match (written.strip_prefix("0x"), written.strip_prefix("0o")) {
        (Some(digits), _) => (digits, 16),
        (_, Some(digits)) => (digits, 8),
        _ => (&*written, 10),
    };
    u32::from_str_radix(digits, radix).ok()
}

/// A prefix of a text that contains its first words.
fn prefix(text: &str) -> &str {
    let end = text.char_indices().nth(200).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default()
}

fn start_of(token: &SyntaxToken) -> usize {
    usize::from(token.text_range().start())
}

fn start(node: &SyntaxNode) -> usize {
    usize::from(node.text_range().start())
}

/// The children of a node, without blanks and comments.
fn significant(node: &SyntaxNode) -> impl Iterator<Item = SyntaxElement> {
    node.children_with_tokens()
        .filter(|child| !matches!(child.kind(), SyntaxKind::WHITESPACE | SyntaxKind::COMMENT))
}

fn first(node: &SyntaxNode) -> Option<SyntaxKind> {
    significant(node).next().map(|child| child.kind())
}

fn is_update(kind: SyntaxKind) -> bool {
    use SyntaxKind as Kind;
    matches!(
        kind,
        Kind::CREATE_CLAUSE
            | Kind::MERGE_CLAUSE
            | Kind::SET_CLAUSE
            | Kind::REMOVE_CLAUSE
            | Kind::DELETE_CLAUSE
            | Kind::FOREACH_CLAUSE
    )
}

fn is_reading(kind: SyntaxKind) -> bool {
    use SyntaxKind as Kind;
    matches!(
        kind,
        Kind::MATCH_CLAUSE
            | Kind::UNWIND_CLAUSE
            | Kind::LOAD_CSV_CLAUSE
            | Kind::CALL_SUBQUERY_CLAUSE
            | Kind::STANDALONE_CALL
            | Kind::WITH_CLAUSE
            | Kind::RETURN_CLAUSE
            | Kind::FINISH_CLAUSE
    )
}

fn is_judged_elsewhere(kind: SyntaxKind) -> bool {
    use SyntaxKind as Kind;
    matches!(kind, Kind::UNION | Kind::SHOW_CLAUSE | Kind::USE_CLAUSE)
}
