//! Many JSON Pointers, whose values are found in one pass over a text.

use crate::pointer::Pointer;
use crate::trusted::{TrustedCursor, string_is};
use std::borrow::Cow;

/// Members up to which each is compared with a name; beyond that they are searched.
const FEW_MEMBERS: usize = 8;

/// Pointers, numbered in the order in which they came. Finding all of them takes one pass, however
/// many they are: their steps are a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointerSet {
    /// The first is the root.
    nodes: Vec<Node>,
    count: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Node {
    /// The pointer that ends here.
    number: Option<usize>,
    /// The next step as a name, sorted, and its node.
    members: Vec<(String, usize)>,
    /// The next step as an index, sorted, and its node.
    elements: Vec<(usize, usize)>,
}

impl Default for PointerSet {
    fn default() -> PointerSet {
        PointerSet { nodes: vec![Node::default()], count: 0 }
    }
}

impl From<&Pointer> for PointerSet {
    fn from(pointer: &Pointer) -> PointerSet {
        let mut set = PointerSet::default();
        set.add(pointer);
        set
    }
}

impl PointerSet {
    /// Adds a pointer; gives its number, which is that of an equal one.
    pub fn add(&mut self, pointer: &Pointer) -> usize {
        let mut at = 0;
        for (key, index) in pointer.steps() {
            let place = self.nodes[at].members.binary_search_by(|(known, _)| (**known).cmp(key));
            at = match place {
                Ok(place) => self.nodes[at].members[place].1,
                Err(place) => {
                    let next = self.nodes.len();
                    self.nodes.push(Node::default());
                    let node = &mut self.nodes[at];
                    node.members.insert(place, (key.to_owned(), next));
                    if let Some(index) = index {
                        let place = node.elements.partition_point(|(known, _)| *known < index);
                        node.elements.insert(place, (index, next));
                    }
                    next
                }
            };
        }
        let count = &mut self.count;
        *self.nodes[at].number.get_or_insert_with(|| {
            *count += 1;
            *count - 1
        })
    }

    /// Whether there is no pointer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// What each pointer points at, as sent, by its number; `None` if there is nothing. Of members
    /// of the same name the last counts. The syntax of `json` has been checked before; on other
    /// text this finds anything or nothing, and panics nowhere.
    #[must_use]
    pub fn find<'a>(&self, json: &'a str) -> Vec<Option<&'a str>> {
        let mut pass = Pass {
            nodes: &self.nodes,
            found: vec![None; self.count],
            log: Vec::new(),
            visits: vec![(0, 0); self.nodes.len()],
        };
        // Text that is not JSON ends the pass.
        let _ = pass.descend(&mut TrustedCursor::new(json), 0);
        pass.found
    }
}

impl Node {
    fn is_leaf(&self) -> bool {
        self.members.is_empty()
    }

    /// The node of a member's name as written, with its quotes.
    fn member(&self, written: &str) -> Option<usize> {
        if self.members.len() <= FEW_MEMBERS {
            let same = self.members.iter().find(|(key, _)| string_is(written, key));
            return same.map(|(_, node)| *node);
        }
        let inner = written.strip_prefix('"')?.strip_suffix('"')?;
        let name = if inner.contains('\\') {
            Cow::Owned(serde_json::from_str::<String>(written).ok()?)
        } else {
            Cow::Borrowed(inner)
        };
        let place = self.members.binary_search_by(|(key, _)| (**key).cmp(&*name)).ok()?;
        Some(self.members[place].1)
    }

    fn element(&self, index: usize) -> Option<usize> {
        let place = self.elements.binary_search_by_key(&index, |(known, _)| *known).ok()?;
        Some(self.elements[place].1)
    }
}

/// One pass over a text.
struct Pass<'n, 'a> {
    nodes: &'n [Node],
    found: Vec<Option<&'a str>>,
    /// The numbers found, in their order.
    log: Vec<usize>,
    /// For each node, where the last visit of its tree began and ended in `log`.
    visits: Vec<(usize, usize)>,
}

impl<'a> Pass<'_, 'a> {
    /// Consumes the value of a node. `None`: the text is not JSON.
    fn descend(&mut self, cursor: &mut TrustedCursor<'a>, at: usize) -> Option<()> {
        // A later member of the same name replaces an earlier one, with all that is in it. Each
        // number is passed over once for each time that it was found.
        let (from, to) = self.visits[at];
        for number in &self.log[from..to] {
            self.found[*number] = None;
        }
        let begun = self.log.len();
        let nodes = self.nodes;
        let (node, start) = (&nodes[at], cursor.place()?);
        match cursor.peek()? {
            b'{' if !node.is_leaf() => {
                cursor.eat(b'{')?;
                while !cursor.eat(b'}')? {
                    let next = node.member(cursor.string()?);
                    cursor.eat(b':')?;
                    self.step(cursor, next)?;
                }
            }
            b'[' if !node.elements.is_empty() => {
                cursor.eat(b'[')?;
                let mut index = 0;
                while !cursor.eat(b']')? {
                    self.step(cursor, node.element(index))?;
                    index += 1;
                }
            }
            _ => {
                cursor.value()?;
            }
        }
        if let Some(number) = node.number {
            self.found[number] = cursor.since(start);
            self.log.push(number);
        }
        self.visits[at] = (begun, self.log.len());
        Some(())
    }

    fn step(&mut self, cursor: &mut TrustedCursor<'a>, next: Option<usize>) -> Option<()> {
        match next {
            Some(next) => self.descend(cursor, next)?,
            None => drop(cursor.value()?),
        }
        cursor.eat(b',').map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    const MOST: usize = 32;

    fn find<'a>(pointer: &str, data: &'a str) -> Option<&'a str> {
        alone(&Pointer::parse(pointer, MOST).unwrap(), data)
    }

    #[test]
    fn the_examples_of_the_rfc_hold() {
        let data = r#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,
            "i\\j":5,"k\"l":6," ":7,"m~n":8}"#;
        for (pointer, value) in [
            ("", data),
            ("/foo", r#"["bar","baz"]"#),
            ("/foo/0", r#""bar""#),
            ("/", "0"),
            ("/a~1b", "1"),
            ("/c%d", "2"),
            ("/e^f", "3"),
            ("/g|h", "4"),
            ("/i\\j", "5"),
            ("/k\"l", "6"),
            ("/ ", "7"),
            ("/m~0n", "8"),
        ] {
            assert_eq!(find(pointer, data), Some(value), "{pointer}");
        }
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        let data = r#" {"a":[10,{"b":1e999}],"n":3} "#;
        for pointer in
            ["/b", "/a/2", "/a/-", "/a/01", "/a/+1", "/a/x", "/n/0", "/a/99999999999999999999"]
        {
            assert_eq!(find(pointer, data), None, "{pointer}");
        }
        assert_eq!(find("/a/1/b", data), Some("1e999"));
        assert_eq!(find("", data), Some(data.trim()));
    }

    #[test]
    fn the_last_of_two_equal_names_counts() {
        assert_eq!(find("/a", r#"{"a":1,"b":2,"\u0061":[ 3 ]}"#), Some("[ 3 ]"));
        assert_eq!(find("/a/b", r#"{"a":{"b":1},"a":{"c":2}}"#), None);
        assert_eq!(find("/a/b", r#"{"a":1e999,"a":{"b":1}}"#), Some("1"));
        assert_eq!(find("/a", r#"{"\ud800":1,"a":2,"b":"\udfff"}"#), Some("2"));
    }

    fn key() -> impl Strategy<Value = String> {
        let known = prop::sample::select(vec!["a", "b", "0", "1", "", "~", "/", "a/b", "é\"\\"]);
        prop_oneof![4 => known.prop_map(str::to_owned), 1 => any::<String>()]
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            key().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            let members = prop::collection::vec((key(), inner.clone()), 0..5);
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(Value::from),
                members.prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    fn pointer_text(keys: &[String]) -> String {
        let escaped = keys.iter().map(|key| key.replace('~', "~0").replace('/', "~1"));
        escaped.fold(String::new(), |text, key| text + "/" + &key)
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_serde_json_finds(
            json in json(), keys in prop::collection::vec(key(), 0..4), pretty: bool,
        ) {
            let text = if pretty { format!(" {}\n", serde_json::to_string_pretty(&json).unwrap()) } else { json.to_string() };
            let pointer = pointer_text(&keys);
            let found = find(&pointer, &text);
            let read = found.map(|found| serde_json::from_str::<Value>(found).unwrap());
            prop_assert_eq!(read.as_ref(), json.pointer(&pointer));
        }

        #[test]
        fn no_text_makes_it_panic(
            text in prop_oneof![r#"[\[\]{}",:\\ae01.tn é-]{0,40}"#, any::<String>()],
            keys in prop::collection::vec(key(), 0..4),
        ) {
            for pointer in ["", "/a", "/0", "/a/0/a", &pointer_text(&keys)] {
                let _ = find(pointer, &text);
                let _ = find(pointer, &format!("{{\"a\":{text}"));
            }
        }
    }

    /// What a pointer points at, found by itself.
    fn alone<'a>(pointer: &Pointer, data: &'a str) -> Option<&'a str> {
        PointerSet::from(pointer).find(data)[0]
    }

    fn pointers(texts: &[String]) -> Vec<Pointer> {
        texts.iter().map(|text| Pointer::parse(text, 32).unwrap()).collect()
    }

    #[test]
    fn equal_pointers_have_one_number() {
        let mut set = PointerSet::default();
        let texts = ["/a", "", "/a/0", "/a", "/a~1", "/a/0"].map(str::to_owned);
        let numbers: Vec<usize> = pointers(&texts).iter().map(|it| set.add(it)).collect();
        assert_eq!(numbers, [0, 1, 2, 0, 3, 2]);
        assert_eq!(set.find("[1]"), [None, Some("[1]"), None, None]);
    }

    /// Some 200,000 members of the same name over a tree of 512 pointers: what was found there is
    /// forgotten as often as it was found, not as often as there are pointers.
    #[test]
    fn names_that_repeat_cost_no_more_than_their_text() {
        let mut set = PointerSet::default();
        let texts: Vec<String> = (0..512).map(|i| format!("/a/{i}")).collect();
        pointers(&texts).iter().for_each(|pointer| _ = set.add(pointer));
        let text = format!("{{{}\"a\":{{\"7\":8}}}}", "\"a\":1,".repeat(200_000));
        let found = set.find(&text);
        assert_eq!(found.iter().flatten().collect::<Vec<_>>(), [&"8"]);
    }

    proptest! {
        #[test]
        fn each_is_found_as_by_itself(
            texts in prop::collection::vec("(/(a|b|0|1|~0|é|)){0,3}", 1..14),
            json in r#"[{]("(a|b|0|1|~|é|\\u0061|)" ?: ?(1|"x"|\[2,[{]"a":3[}]\]|[{]"b":\[\],"b":[{]"0":4[}][}]),){0,12}"z":null[}]"#,
        ) {
            let mut set = PointerSet::default();
            let pointers = pointers(&texts);
            let numbers: Vec<usize> = pointers.iter().map(|pointer| set.add(pointer)).collect();
            prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&json).is_ok(), "{json}");
            let found = set.find(&json);
            for (pointer, number) in pointers.iter().zip(numbers) {
                prop_assert_eq!(found[number], alone(pointer, &json), "{} in {}", pointer, json);
            }
        }

        #[test]
        fn no_text_makes_a_set_of_many_panic(text in r#"[\[\]{}",:\\ab0 -]{0,40}"#) {
            let mut set = PointerSet::default();
            let texts = ["/a", "/a/b", "/0", ""].map(str::to_owned);
            pointers(&texts).iter().for_each(|pointer| _ = set.add(pointer));
            let _ = set.find(&text);
        }
    }
}
