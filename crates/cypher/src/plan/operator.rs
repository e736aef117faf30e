//! The elements of a pipeline.

use std::sync::Arc;

use crate::functions::Aggregate;
use crate::ir::{
    Delete, Direction, Expression, Length, LoadCsv, ProjectionItem, Properties, RemoveItem,
    SetItem, Shortest, Slot, SortKey, SubqueryKind, for_each_slot,
};
use crate::procedure::Procedure;

pub(crate) struct QueryPlan {
    /// The branches of a union, in order, each with the slots of its result.
    pub(crate) branches: Vec<(Pipeline, Option<Vec<Slot>>)>,
    /// `UNION`: equivalent rows pass once.
    pub(crate) distinct: bool,
}

pub(crate) struct SubqueryPlan {
    /// How its rows become a value.
    pub(crate) kind: SubqueryKind,
    pub(crate) query: QueryPlan,
}

/// A chain of operators.
#[derive(Default)]
pub(crate) struct Pipeline {
    /// In the order in which rows pass them.
    pub(crate) operators: Vec<Operator>,
    /// Number of operators with state, each of which has a number.
    pub(crate) states: usize,
}

pub(crate) enum Operator {
    /// Binds a slot to each node in turn.
    Scan(Scan),
    /// Binds a slot to each relationship in turn.
    ScanRelationships(RelationshipScan),
    /// Binds a slot to the relationships of a bound node, and another to their other ends.
    Expand(Expand),
    /// The same for chains of relationships.
    ExpandVariable(ExpandVariable),
    /// Binds the shortest chain between two bound nodes.
    Shortest(ShortestPath),
    /// Binds a slot to a path of bound parts.
    Path(PathAssembly),
    /// Passes rows for which it is true.
    Filter(Expression),
    /// Binds a slot to each element of a list in turn.
    Unwind { list: Expression, variable: Slot },
    /// `LOAD CSV`
    LoadCsv(LoadCsv),
    /// The rows of the inner pipeline, or the row itself with nulls.
    Optional {
        inner: Pipeline,
        /// The slots set to null if it produces no row.
        introduced: Vec<Slot>,
    },
    /// Binds slots to the values of expressions.
    Compute(Vec<ProjectionItem>),
    /// Binds a slot to a count that the graph maintains.
    StoredCount {
        slot: Slot,
        /// The objects counted.
        counted: StoredCount,
    },
    /// One row for each group.
    Aggregate(Aggregation),
    /// Equivalent rows pass once.
    Distinct {
        /// The columns to compare.
        columns: Vec<Slot>,
        state: usize,
    },
    /// Sorts rows.
    Sort(SortOperator),
    /// Skips the first rows.
    Skip {
        /// Number of rows.
        count: Expression,
        state: usize,
    },
    /// Ends after this many rows.
    Limit {
        /// Number of rows.
        count: Expression,
        state: usize,
    },
    /// A barrier: rows pass only after all have arrived.
    Eager {
        /// Slots read after it.
        keep: Vec<Slot>,
        state: usize,
    },
    /// `CREATE`
    Create(Creation),
    /// `MERGE`
    Merge(Box<MergeOperator>),
    /// `SET`
    Set(Vec<SetItem>),
    /// `REMOVE`
    Remove(Vec<RemoveItem>),
    /// `DELETE`
    Delete(Delete),
    /// `FOREACH`
    Foreach {
        /// The slot of the element.
        variable: Slot,
        list: Expression,
        /// The updates for each element.
        updates: Pipeline,
    },
    /// `CALL { … }`
    Call {
        /// The query to run for each row.
        query: QueryPlan,
        /// The slots of its columns; without any, the row passes once.
        introduced: Vec<Slot>,
    },
    /// `CALL name(…)`
    Procedure(ProcedureCall),
}

impl Operator {
    /// Its state number, if it keeps state between rows.
    pub(crate) fn keeps(&self) -> Option<usize> {
        match self {
            Operator::Distinct { state, .. }
            | Operator::Skip { state, .. }
            | Operator::Limit { state, .. }
            | Operator::Eager { state, .. } => Some(*state),
            Operator::Sort(sort) => Some(sort.state),
            Operator::Aggregate(aggregation) => Some(aggregation.state),
            _ => None,
        }
    }
}

/// Objects that the graph counts.
pub(crate) enum StoredCount {
    /// Nodes with a label, or all.
    Nodes(Option<Arc<str>>),
    /// Relationships of a type, or all.
    Relationships(Option<Arc<str>>),
}

/// A scan of nodes.
pub(crate) struct Scan {
    /// The slot of the nodes.
    pub(crate) slot: Slot,
    /// The source of the nodes.
    pub(crate) source: ScanSource,
    /// What every node must equal, if the scan is to be repeated row by row.
    pub(crate) join: Option<Join>,
}

impl Scan {
    /// Calls `visit` for every expression that it evaluates.
    pub(crate) fn for_each_value(&self, visit: &mut dyn FnMut(&Expression)) {
        let mut sought = |wanted: &SoughtValue| match wanted {
            SoughtValue::One(value) | SoughtValue::AnyOf(value) => visit(value),
        };
        match &self.source {
            ScanSource::All | ScanSource::Label(_) => {}
            ScanSource::Seek(seeks) => seeks.iter().for_each(|seek| sought(&seek.wanted)),
            ScanSource::Ids(wanted) => sought(wanted),
        }
        self.join.iter().flat_map(|join| &join.equal).for_each(|it| visit(&it.wanted));
    }
}

/// Equalities between a node and what is known before it. From the second row on they are answered
/// by a table of all nodes, unless an index answers them.
pub(crate) struct Join {
    /// The label of the nodes; all nodes without one.
    pub(crate) label: Option<Arc<str>>,
    /// The equalities. All are properties with a label, or the first is something else.
    pub(crate) equal: Vec<JoinKey>,
}

/// One equality of a join.
pub(crate) struct JoinKey {
    /// An expression over the node alone.
    pub(crate) key: Expression,
    /// Its property, if it is nothing but one.
    pub(crate) property: Option<Arc<str>>,
    /// The value that it must equal.
    pub(crate) wanted: Expression,
}

impl JoinKey {
    /// Whether the value differs from row to row.
    pub(crate) fn varies(&self) -> bool {
        let mut reads = false;
        for_each_slot(&self.wanted, &mut |_| reads = true, &mut |_| {});
        reads
    }
}

/// The source of a node scan.
pub(crate) enum ScanSource {
    All,
    /// Those with a label.
    Label(Arc<str>),
    /// Those with a label and a property: through the first of these with an index, otherwise
    /// through the first.
    Seek(Vec<Seek>),
    /// Those with an id.
    Ids(SoughtValue),
}

/// A label, a property and its values.
pub(crate) struct Seek {
    pub(crate) label: Arc<str>,
    /// The property.
    pub(crate) key: Arc<str>,
    pub(crate) wanted: SoughtValue,
}

/// Values to look up. The results must still be compared.
#[derive(Clone)]
pub(crate) enum SoughtValue {
    /// Equal to a value.
    One(Expression),
    /// Equal to an element of a list.
    AnyOf(Expression),
}

/// A scan of relationships.
pub(crate) struct RelationshipScan {
    /// The slot of the relationships.
    pub(crate) slot: Slot,
    /// The source of the relationships.
    pub(crate) source: RelationshipSource,
}

/// The source of a relationship scan.
pub(crate) enum RelationshipSource {
    All,
    /// Those of a type.
    Types(Vec<Arc<str>>),
    /// Those of a type with a property equal to a value.
    Seek {
        /// The type.
        kind: Arc<str>,
        /// The property.
        key: Arc<str>,
        /// Its value.
        wanted: Expression,
    },
    /// Those with an id.
    Ids(SoughtValue),
}

/// The ends of a relationship in a pattern.
pub(crate) struct Connection {
    /// The node to start from.
    pub(crate) from: Slot,
    /// Whether it is bound; otherwise the relationship is.
    pub(crate) from_bound: bool,
    /// The relationship, or the list of them.
    pub(crate) relationship: Slot,
    /// The other node.
    pub(crate) to: Slot,
    /// Whether it is bound.
    pub(crate) to_bound: bool,
    /// Relative to the bound node.
    pub(crate) direction: Direction,
    /// Its possible types; empty for any.
    pub(crate) types: Vec<Arc<str>>,
    /// Relationships, or lists of them, that it must differ from.
    pub(crate) unlike: Vec<Slot>,
}

/// A step of a pattern.
pub(crate) struct Expand {
    pub(crate) connection: Connection,
    /// Whether the relationship is bound, so that only its ends are matched.
    pub(crate) bound: bool,
}

/// A chain of steps.
pub(crate) struct ExpandVariable {
    pub(crate) connection: Connection,
    /// Whether the list is bound.
    pub(crate) bound: bool,
    pub(crate) length: Length,
    /// The properties of every relationship.
    pub(crate) properties: Vec<(Arc<str>, Expression)>,
    /// Walked from its end, so the list is reversed.
    pub(crate) reversed: bool,
    /// Whether the list has a name.
    pub(crate) has_name: bool,
    /// Only the nodes at its end are of interest, each once.
    pub(crate) ends_only: bool,
}

/// The shortest chain of steps between bound nodes.
pub(crate) struct ShortestPath {
    /// The connection; both ends are bound.
    pub(crate) connection: Connection,
    pub(crate) which: Shortest,
    pub(crate) length: Length,
    /// Whether the result is one relationship instead of a list.
    pub(crate) single: bool,
    /// The properties of every relationship.
    pub(crate) properties: Vec<(Arc<str>, Expression)>,
    /// The path, if it has a name.
    pub(crate) path: Option<PathAssembly>,
    /// Conditions on the whole chain: the shortest chain that satisfies them is wanted.
    pub(crate) asked: Vec<Expression>,
    /// Those of the above that every step must satisfy as a path of its own.
    pub(crate) asked_of_each: Vec<Expression>,
}

/// How to assemble a path.
pub(crate) struct PathAssembly {
    /// The slot of the path.
    pub(crate) slot: Slot,
    /// Its first node.
    pub(crate) start: Slot,
    /// The relationships or lists of them, with the node after each.
    pub(crate) steps: Vec<(Slot, Slot)>,
}

/// A grouping with aggregations.
pub(crate) struct Aggregation {
    /// The grouping keys. Without keys there is one group, even of no rows.
    pub(crate) keys: Vec<ProjectionItem>,
    /// The aggregations with their slots and arguments.
    pub(crate) aggregates: Vec<Accumulation>,
    pub(crate) state: usize,
}

/// An aggregation of a grouping.
pub(crate) struct Accumulation {
    /// The slot of the result.
    pub(crate) slot: Slot,
    /// The aggregation.
    pub(crate) aggregate: Aggregate,
    /// Whether equivalent values count once.
    pub(crate) distinct: bool,
    /// The value to add; `None` for `count(*)`.
    pub(crate) value: Option<Expression>,
    /// The second argument of percentiles.
    pub(crate) fraction: Option<Expression>,
}

/// Sorting of all rows, or selection of the first ones.
pub(crate) struct SortOperator {
    pub(crate) keys: Vec<SortKey>,
    /// Slots read after it.
    pub(crate) keep: Vec<Slot>,
    /// Only the first rows are needed: the counts of `SKIP` and `LIMIT`.
    pub(crate) top: Option<(Option<Expression>, Expression)>,
    pub(crate) state: usize,
}

/// The objects that a `CREATE` creates, in order.
#[derive(Default)]
pub(crate) struct Creation {
    /// The new nodes.
    pub(crate) nodes: Vec<CreateNode>,
    /// The new relationships.
    pub(crate) relationships: Vec<CreateRelationship>,
    /// The named paths.
    pub(crate) paths: Vec<PathAssembly>,
}

/// A new node.
pub(crate) struct CreateNode {
    pub(crate) slot: Slot,
    pub(crate) labels: Vec<Arc<str>>,
    /// Further labels, from expressions.
    pub(crate) dynamic_labels: Vec<Expression>,
    pub(crate) properties: Properties,
}

/// A new relationship.
pub(crate) struct CreateRelationship {
    pub(crate) slot: Slot,
    /// Its type.
    pub(crate) kind: Arc<str>,
    /// Its type if it comes from an expression.
    pub(crate) dynamic_kind: Option<Expression>,
    /// Its start node.
    pub(crate) from: Slot,
    /// Its end node.
    pub(crate) to: Slot,
    pub(crate) properties: Properties,
}

/// A call of a procedure.
pub(crate) struct ProcedureCall {
    pub(crate) procedure: Arc<dyn Procedure>,
    pub(crate) arguments: Vec<Expression>,
    /// Its yielded columns and their slots.
    pub(crate) yields: Vec<(usize, Slot)>,
}

/// `MERGE`
pub(crate) struct MergeOperator {
    /// The search.
    pub(crate) matching: Pipeline,
    /// The creation if the search finds nothing.
    pub(crate) creation: Creation,
    /// What to set then.
    pub(crate) on_create: Vec<SetItem>,
    /// What to set if the search finds something.
    pub(crate) on_match: Vec<SetItem>,
    /// The slots that it binds.
    pub(crate) introduced: Vec<Slot>,
    /// Bound nodes; null for one of them is an error.
    pub(crate) bound: Vec<Slot>,
    /// Property values that must not be null.
    pub(crate) values: Vec<(Arc<str>, Expression)>,
}
