//! A sorted set of fixed-size keys: a B+ tree whose nodes are shared between versions until one of
//! them writes.

use super::SHARED_BYTES;
use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Maximum number of keys of a leaf.
const FULL_LEAF: usize = 96;
/// Maximum number of children of a branch; small, because copying a branch costs a reference count
/// for each child.
const FULL_BRANCH: usize = 32;

/// A sorted set of keys. A clone is a version: writes to one are never visible in the other.
#[derive(Debug, Clone)]
pub(crate) struct Tree<const N: usize> {
    root: Arc<Node<N>>,
}

#[derive(Debug)]
enum Node<const N: usize> {
    Leaf(Vec<[u8; N]>),
    /// Children, each with a lower bound of its keys (except the first child's).
    Branch(Vec<([u8; N], Arc<Node<N>>)>),
}

impl<const N: usize> Default for Tree<N> {
    fn default() -> Tree<N> {
        Tree { root: Arc::new(Node::Leaf(Vec::new())) }
    }
}

impl<const N: usize> Clone for Node<N> {
    /// Reserves room for the insertion that the copy is made for.
    fn clone(&self) -> Node<N> {
        fn roomy<T: Clone>(list: &[T]) -> Vec<T> {
            let mut copy = Vec::with_capacity(list.len() + 2);
            copy.extend_from_slice(list);
            copy
        }
        match self {
            Node::Leaf(keys) => Node::Leaf(roomy(keys)),
            Node::Branch(children) => Node::Branch(roomy(children)),
        }
    }
}

/// Inserts without doubling the capacity: nodes are numerous and live long.
fn insert_at<T>(list: &mut Vec<T>, at: usize, item: T) {
    if list.len() == list.capacity() {
        list.reserve_exact((list.len() / 4).max(4));
    }
    list.insert(at, item);
}

/// Byte order, compared eight bytes at a time: searching dominates the cost of a tree.
#[inline]
fn compare<const N: usize>(a: &[u8; N], b: &[u8; N]) -> Ordering {
    let (mut a, mut b) = (&a[..], &b[..]);
    while let (Some((x, rest_a)), Some((y, rest_b))) =
        (a.split_first_chunk::<8>(), b.split_first_chunk::<8>())
    {
        match u64::from_be_bytes(*x).cmp(&u64::from_be_bytes(*y)) {
            Ordering::Equal => (a, b) = (rest_a, rest_b),
            order => return order,
        }
    }
    let [mut x, mut y] = [[0; 8]; 2];
    x[..a.len()].copy_from_slice(a);
    y[..b.len()].copy_from_slice(b);
    u64::from_be_bytes(x).cmp(&u64::from_be_bytes(y))
}

/// The child that a key belongs to.
fn child_of<const N: usize>(children: &[([u8; N], Arc<Node<N>>)], key: &[u8; N]) -> usize {
    children.partition_point(|(first, _)| compare(first, key).is_le()).saturating_sub(1)
}

/// The position of a key, or where it would be inserted.
fn place_of<const N: usize>(keys: &[[u8; N]], key: &[u8; N]) -> Result<usize, usize> {
    keys.binary_search_by(|known| compare(known, key))
}

impl<const N: usize> Node<N> {
    fn len(&self) -> usize {
        match self {
            Node::Leaf(keys) => keys.len(),
            Node::Branch(children) => children.len(),
        }
    }

    /// Its capacity.
    fn full(&self) -> usize {
        match self {
            Node::Leaf(_) => FULL_LEAF,
            Node::Branch(_) => FULL_BRANCH,
        }
    }

    /// Whether it is small enough to be merged with a neighbour.
    fn is_scant(&self) -> bool {
        self.len() < self.full() / 3
    }

    /// Returns whether the key was new and, if the node overflowed, its right half with its first
    /// key.
    fn insert(&mut self, key: [u8; N]) -> (bool, Option<([u8; N], Node<N>)>) {
        match self {
            Node::Leaf(keys) => {
                let Err(at) = place_of(keys, &key) else { return (false, None) };
                insert_at(keys, at, key);
                if keys.len() <= FULL_LEAF {
                    return (true, None);
                }
                // Sorted insertion leaves full leaves behind.
                let half = if at == FULL_LEAF { FULL_LEAF } else { keys.len() / 2 };
                let right = keys.split_off(half);
                (true, Some((right[0], Node::Leaf(right))))
            }
            Node::Branch(children) => {
                let at = child_of(children, &key);
                let (is_new, split) = Arc::make_mut(&mut children[at].1).insert(key);
                let Some((first, right)) = split else { return (is_new, None) };
                insert_at(children, at + 1, (first, Arc::new(right)));
                if children.len() <= FULL_BRANCH {
                    return (is_new, None);
                }
                let half = if at + 1 == FULL_BRANCH { FULL_BRANCH - 1 } else { children.len() / 2 };
                let right = children.split_off(half);
                (is_new, Some((right[0].0, Node::Branch(right))))
            }
        }
    }

    fn remove(&mut self, key: &[u8; N]) -> bool {
        match self {
            Node::Leaf(keys) => {
                let Ok(at) = place_of(keys, key) else { return false };
                keys.remove(at);
                true
            }
            Node::Branch(children) => {
                let at = child_of(children, key);
                let was_there = Arc::make_mut(&mut children[at].1).remove(key);
                if children[at].1.is_scant() {
                    join(children, at);
                }
                was_there
            }
        }
    }

    /// Passes the keys from `from` on to `visit`.
    fn walk(
        &self,
        from: &[u8; N],
        visit: &mut impl FnMut(&[u8; N]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self {
            Node::Leaf(keys) => {
                let start = keys.partition_point(|key| compare(key, from).is_lt());
                keys[start..].iter().try_for_each(visit)
            }
            Node::Branch(children) => {
                let start = child_of(children, from);
                children[start..].iter().try_for_each(|(_, child)| child.walk(from, visit))
            }
        }
    }
}

/// Merges the child at `at` with its neighbour if both fit into one node.
fn join<const N: usize>(children: &mut Vec<([u8; N], Arc<Node<N>>)>, at: usize) {
    if children[at].1.len() == 0 && children.len() > 1 {
        children.remove(at);
        return;
    }
    let left = if at + 1 < children.len() { at } else { at.saturating_sub(1) };
    let Some([(_, a), (_, b)]) = children.get(left..left + 2) else { return };
    if a.len() + b.len() > a.full() * 3 / 4 {
        return;
    }
    let (first, right) = children.remove(left + 1);
    match (Arc::make_mut(&mut children[left].1), &*right) {
        (Node::Leaf(a), Node::Leaf(b)) => a.extend_from_slice(b),
        (Node::Branch(a), Node::Branch(b)) => {
            a.extend_from_slice(b);
        }
        // All leaves have the same depth.
        _ => children.insert(left + 1, (first, right)),
    }
}

/// A shared node shares everything below it.
fn own_bytes<const N: usize>(node: &Arc<Node<N>>) -> usize {
    if Arc::strong_count(node) > 1 {
        return 0;
    }
    let content = match &**node {
        Node::Leaf(keys) => keys.capacity() * N,
        Node::Branch(children) => {
            let below: usize = children.iter().map(|(_, child)| own_bytes(child)).sum();
            children.capacity() * size_of::<([u8; N], Arc<Node<N>>)>() + below
        }
    };
    SHARED_BYTES + size_of::<Node<N>>() + content
}

impl<const N: usize> Tree<N> {
    /// Approximate number of bytes not shared with other versions.
    pub(crate) fn own_bytes(&self) -> usize {
        own_bytes(&self.root)
    }

    /// Adds a key; returns whether it was new.
    pub(crate) fn insert(&mut self, key: [u8; N]) -> bool {
        let (is_new, split) = Arc::make_mut(&mut self.root).insert(key);
        if let Some((first, right)) = split {
            let left = std::mem::take(self).root;
            self.root = Arc::new(Node::Branch(vec![([0; N], left), (first, Arc::new(right))]));
        }
        is_new
    }

    /// Removes a key; returns whether it existed.
    pub(crate) fn remove(&mut self, key: &[u8; N]) -> bool {
        let was_there = Arc::make_mut(&mut self.root).remove(key);
        while let Node::Branch(children) = &*self.root {
            let [(_, only)] = &children[..] else { break };
            self.root = only.clone();
        }
        was_there
    }

    /// Passes the keys from `from` on to `visit`, in order, until it breaks.
    pub(crate) fn walk(&self, from: &[u8; N], mut visit: impl FnMut(&[u8; N]) -> ControlFlow<()>) {
        let _ = self.root.walk(from, &mut visit);
    }

    /// Passes the keys that begin with `prefix` to `visit`, in order, until it breaks.
    pub(crate) fn walk_prefix(
        &self,
        prefix: &[u8],
        mut visit: impl FnMut(&[u8; N]) -> ControlFlow<()>,
    ) {
        let mut from = [0; N];
        from[..prefix.len()].copy_from_slice(prefix);
        self.walk(
            &from,
            |key| if key.starts_with(prefix) { visit(key) } else { ControlFlow::Break(()) },
        );
    }

    /// Whether any key begins with `prefix`.
    pub(crate) fn has_prefix(&self, prefix: &[u8]) -> bool {
        let mut is_there = false;
        self.walk_prefix(prefix, |_| {
            is_there = true;
            ControlFlow::Break(())
        });
        is_there
    }
}

/// Builds a tree with full leaves from sorted keys.
#[derive(Debug, Default)]
pub(crate) struct TreeBuilder<const N: usize> {
    leaves: Vec<([u8; N], Arc<Node<N>>)>,
    leaf: Vec<[u8; N]>,
}

impl<const N: usize> TreeBuilder<N> {
    /// Adds a key; `None` if it does not sort after the last one.
    pub(crate) fn push(&mut self, key: [u8; N]) -> Option<()> {
        if self.leaf.last().is_some_and(|last| *last >= key) {
            return None;
        }
        if self.leaf.len() == FULL_LEAF {
            // The last key stays for comparison with the next one.
            let last = self.leaf.pop()?;
            let leaf = std::mem::replace(&mut self.leaf, Vec::with_capacity(FULL_LEAF));
            self.leaves.push((leaf[0], Arc::new(Node::Leaf(leaf))));
            self.leaf.push(last);
        }
        self.leaf.push(key);
        Some(())
    }

    pub(crate) fn finish(mut self) -> Tree<N> {
        self.leaf.shrink_to_fit();
        let first = self.leaf.first().copied().unwrap_or([0; N]);
        let mut level = self.leaves;
        level.push((first, Arc::new(Node::Leaf(self.leaf))));
        while level.len() > 1 {
            let groups = level.chunks(FULL_BRANCH);
            let branch = |group: &[([u8; N], Arc<Node<N>>)]| {
                (group[0].0, Arc::new(Node::Branch(group.to_vec())))
            };
            level = groups.map(branch).collect();
        }
        level.pop().map_or_else(Tree::default, |(_, root)| Tree { root })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn keys_from(tree: &Tree<4>, from: u32) -> Vec<u32> {
        let mut keys = Vec::new();
        tree.walk(&from.to_be_bytes(), |key| {
            keys.push(u32::from_be_bytes(*key));
            ControlFlow::Continue(())
        });
        keys
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn versions_stay_as_they_were(rounds in prop::collection::vec((0u32..3000, 1u32..900, 1u32..7, any::<bool>()), 1..12)) {
            let (mut tree, mut model) = (Tree::<4>::default(), BTreeSet::new());
            let mut versions = Vec::new();
            for (start, count, stride, is_removal) in rounds {
                for key in (start..).step_by(stride as usize).take(count as usize) {
                    if is_removal {
                        prop_assert_eq!(tree.remove(&key.to_be_bytes()), model.remove(&key));
                    } else {
                        prop_assert_eq!(tree.insert(key.to_be_bytes()), model.insert(key));
                    }
                }
                versions.push((tree.clone(), model.clone()));
            }
            for (tree, model) in versions {
                for from in [0, 1, 700, 2999, 5000] {
                    prop_assert!(keys_from(&tree, from).iter().eq(model.range(from..)));
                }
                prop_assert!((0..6000).all(|key: u32| tree.has_prefix(&key.to_be_bytes()) == model.contains(&key)));
                let mut builder = TreeBuilder::default();
                prop_assert!(model.iter().all(|key| builder.push(key.to_be_bytes()).is_some()));
                let packed = builder.finish();
                prop_assert!(keys_from(&packed, 0).iter().eq(model.iter()));
                prop_assert!(keys_from(&packed, 1500).iter().eq(model.range(1500..)));
            }
        }
    }

    proptest! {
        #[test]
        fn keys_are_in_the_order_of_their_bytes(a in any::<[u8; 21]>(), mut b in any::<[u8; 21]>(), shared in 0..=21usize) {
            b[..shared].copy_from_slice(&a[..shared]);
            prop_assert_eq!(compare(&a, &b), a.cmp(&b));
        }
    }

    #[test]
    fn prefixes_end_where_they_end() {
        let mut tree = Tree::<2>::default();
        for key in [[1, 9], [2, 0], [2, 255], [3, 0]] {
            tree.insert(key);
        }
        let mut keys = Vec::new();
        tree.walk_prefix(&[2], |key| {
            keys.push(*key);
            ControlFlow::Continue(())
        });
        assert_eq!(keys, [[2, 0], [2, 255]]);
        assert!(tree.has_prefix(&[3]) && !tree.has_prefix(&[4]));
        let mut builder = TreeBuilder::default();
        assert_eq!([[2], [1], [2]].map(|key| builder.push(key)), [Some(()), None, None]);
    }
}
