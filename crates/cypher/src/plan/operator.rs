//! What a pipeline is made of.

use std::sync::Arc;

use crate::functions::Aggregate;
use crate::ir::{
    Delete, Direction, Expression, Length, ProjectionItem, Properties, RemoveItem, SetItem,
    Shortest, Slot, SortKey, SubqueryKind,
};
use crate::procedure::Procedure;

/// A query's plan.
pub(crate) struct QueryPlan {
    /// The parts of a union, in order; each with the slots of its result.
    pub(crate) branches: Vec<(Pipeline, Option<Vec<Slot>>)>,
    /// `UNION`: equivalent rows pass once.
    pub(crate) distinct: bool,
}

/// A subquery's plan.
pub(crate) struct SubqueryPlan {
    /// What is made of its rows.
    pub(crate) kind: SubqueryKind,
    /// The query.
    pub(crate) query: QueryPlan,
}

/// A chain of operators.
#[derive(Default)]
pub(crate) struct Pipeline {
    /// In the order in which rows pass them.
    pub(crate) operators: Vec<Operator>,
    /// How many of them keep something; each of these has its number.
    pub(crate) states: usize,
}

/// One operator.
pub(crate) enum Operator {
    /// Binds a slot to nodes one after the other.
    Scan(Scan),
    /// Binds a slot to relationships one after the other.
    ScanRelationships(RelationshipScan),
    /// Binds a slot to relationships of bound nodes, and another to their other ends.
    Expand(Expand),
    /// The same for chains of relationships.
    ExpandVariable(ExpandVariable),
    /// Binds the shortest chain between two bound nodes.
    Shortest(ShortestPath),
    /// Binds a slot to a path whose parts are bound.
    Path(PathAssembly),
    /// Rows pass for which it is true.
    Filter(Expression),
    /// Binds a slot to the elements of a list one after the other.
    Unwind {
        /// The list.
        list: Expression,
        /// The slot.
        variable: Slot,
    },
    /// Rows of the inner pipeline, or the row itself with nulls.
    Optional {
        /// What is tried.
        inner: Pipeline,
        /// What is null if it finds nothing.
        introduced: Vec<Slot>,
    },
    /// Binds slots to the values of expressions.
    Compute(Vec<ProjectionItem>),
    /// Binds a slot to a count that the graph has ready.
    StoredCount {
        /// The slot.
        slot: Slot,
        /// Of what.
        counted: StoredCount,
    },
    /// One row for each group.
    Aggregate(Aggregation),
    /// Equivalent rows pass once.
    Distinct {
        /// By what they are compared.
        columns: Vec<Slot>,
        /// Its number among those that keep something.
        state: usize,
    },
    /// Rows in order.
    Sort(SortOperator),
    /// Leaves the first rows out.
    Skip {
        /// How many.
        count: Expression,
        /// Its number among those that keep something.
        state: usize,
    },
    /// Ends after so many rows.
    Limit {
        /// How many.
        count: Expression,
        /// Its number among those that keep something.
        state: usize,
    },
    /// A barrier: nothing passes before all have come.
    Eager {
        /// What is read after it.
        keep: Vec<Slot>,
        /// Its number among those that keep something.
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
        /// The list.
        list: Expression,
        /// What is done for each.
        updates: Pipeline,
    },
    /// `CALL { … }`
    Call {
        /// What is run for each row.
        query: QueryPlan,
        /// Where its columns go; without any the row passes once.
        introduced: Vec<Slot>,
    },
    /// `CALL name(…)`
    Procedure(ProcedureCall),
}

impl Operator {
    /// The number of what it keeps from row to row, if it does.
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

/// What the graph counts.
pub(crate) enum StoredCount {
    /// Nodes with a label, or all.
    Nodes(Option<Arc<str>>),
    /// Relationships of a type, or all.
    Relationships(Option<Arc<str>>),
}

/// A scan of nodes.
pub(crate) struct Scan {
    /// Where they go.
    pub(crate) slot: Slot,
    /// Which.
    pub(crate) source: ScanSource,
}

/// Where a scan gets its nodes.
pub(crate) enum ScanSource {
    /// All.
    All,
    /// Those with a label.
    Label(Arc<str>),
    /// Those with a label and a property: by the first of these for which there is an index, else
    /// by the first.
    Seek(Vec<Seek>),
    /// Those with an id.
    Ids(SoughtValue),
}

/// A label, a property and its values.
pub(crate) struct Seek {
    /// The label.
    pub(crate) label: Arc<str>,
    /// The property.
    pub(crate) key: Arc<str>,
    /// Its values.
    pub(crate) wanted: SoughtValue,
}

/// Values that are looked for. What is found for them is still to be compared.
#[derive(Clone)]
pub(crate) enum SoughtValue {
    /// Equal to a value.
    One(Expression),
    /// Equal to an element of a list.
    AnyOf(Expression),
}

/// A scan of relationships.
pub(crate) struct RelationshipScan {
    /// Where they go.
    pub(crate) slot: Slot,
    /// Which.
    pub(crate) source: RelationshipSource,
}

/// Where a scan gets its relationships.
pub(crate) enum RelationshipSource {
    /// All.
    All,
    /// Those of a type.
    Types(Vec<Arc<str>>),
    /// Those of a type with a property that is equal to a value.
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

/// Where a relationship of a pattern leads.
pub(crate) struct Connection {
    /// The node walked from.
    pub(crate) from: Slot,
    /// Whether that is bound; if not, the relationship is.
    pub(crate) from_bound: bool,
    /// The relationship, or the list of them.
    pub(crate) relationship: Slot,
    /// The other node.
    pub(crate) to: Slot,
    /// Whether that is bound.
    pub(crate) to_bound: bool,
    /// As seen from the bound node.
    pub(crate) direction: Direction,
    /// Types of which it has one; empty for any.
    pub(crate) types: Vec<Arc<str>>,
    /// Relationships, or lists of them, that it is not among.
    pub(crate) unlike: Vec<Slot>,
}

/// A step of a pattern.
pub(crate) struct Expand {
    /// Where it leads.
    pub(crate) connection: Connection,
    /// Whether the relationship is bound, so that only its ends are in question.
    pub(crate) bound: bool,
}

/// A chain of steps.
pub(crate) struct ExpandVariable {
    /// Where it leads.
    pub(crate) connection: Connection,
    /// Whether the list is bound.
    pub(crate) bound: bool,
    /// How long it is.
    pub(crate) length: Length,
    /// What every relationship has.
    pub(crate) properties: Vec<(Arc<str>, Expression)>,
    /// Walked from its end: the list is turned around.
    pub(crate) reversed: bool,
}

/// The shortest chain of steps between bound nodes.
pub(crate) struct ShortestPath {
    /// Where it leads; both ends are bound.
    pub(crate) connection: Connection,
    /// One or all.
    pub(crate) which: Shortest,
    /// How long it is.
    pub(crate) length: Length,
    /// It is one relationship and no list.
    pub(crate) single: bool,
    /// What every relationship has.
    pub(crate) properties: Vec<(Arc<str>, Expression)>,
    /// The path, if it has a name.
    pub(crate) path: Option<PathAssembly>,
    /// What it must fulfil as a whole: it is the shortest among those that do.
    pub(crate) asked: Vec<Expression>,
    /// Those of the above that every step of it must fulfil for itself, as a path of its own.
    pub(crate) asked_of_each: Vec<Expression>,
}

/// How a path is put together.
pub(crate) struct PathAssembly {
    /// Where it goes.
    pub(crate) slot: Slot,
    /// Its first node.
    pub(crate) start: Slot,
    /// The relationships or lists of them, with the node after each.
    pub(crate) steps: Vec<(Slot, Slot)>,
}

/// A grouping with aggregations.
pub(crate) struct Aggregation {
    /// What rows of a group have in common. Without keys there is one group even of no rows.
    pub(crate) keys: Vec<ProjectionItem>,
    /// Where each result goes, its aggregation, and its arguments.
    pub(crate) aggregates: Vec<Accumulation>,
    /// Its number among those that keep something.
    pub(crate) state: usize,
}

/// An aggregation of a grouping.
pub(crate) struct Accumulation {
    /// Where the result goes.
    pub(crate) slot: Slot,
    /// Which.
    pub(crate) aggregate: Aggregate,
    /// Equivalent values count once.
    pub(crate) distinct: bool,
    /// What is added; nothing for `count(*)`.
    pub(crate) value: Option<Expression>,
    /// The second argument of percentiles.
    pub(crate) fraction: Option<Expression>,
}

/// Sorting, as a whole or the first rows of it.
pub(crate) struct SortOperator {
    /// By what.
    pub(crate) keys: Vec<SortKey>,
    /// What is read after it.
    pub(crate) keep: Vec<Slot>,
    /// Only so many of the first rows are asked for: the amounts of `SKIP` and `LIMIT`.
    pub(crate) top: Option<(Option<Expression>, Expression)>,
    /// Its number among those that keep something.
    pub(crate) state: usize,
}

/// What a `CREATE` creates, in order.
#[derive(Default)]
pub(crate) struct Creation {
    /// The new nodes.
    pub(crate) nodes: Vec<CreateNode>,
    /// The new relationships.
    pub(crate) relationships: Vec<CreateRelationship>,
    /// The paths that have names.
    pub(crate) paths: Vec<PathAssembly>,
}

/// A new node.
pub(crate) struct CreateNode {
    /// Where it goes.
    pub(crate) slot: Slot,
    /// Its labels.
    pub(crate) labels: Vec<Arc<str>>,
    /// Its properties.
    pub(crate) properties: Properties,
}

/// A new relationship.
pub(crate) struct CreateRelationship {
    /// Where it goes.
    pub(crate) slot: Slot,
    /// Its type.
    pub(crate) kind: Arc<str>,
    /// Where it starts.
    pub(crate) from: Slot,
    /// Where it ends.
    pub(crate) to: Slot,
    /// Its properties.
    pub(crate) properties: Properties,
}

/// A call of a procedure.
pub(crate) struct ProcedureCall {
    /// Which.
    pub(crate) procedure: Arc<dyn Procedure>,
    /// With what.
    pub(crate) arguments: Vec<Expression>,
    /// Which of its columns go where.
    pub(crate) yields: Vec<(usize, Slot)>,
}

/// `MERGE`
pub(crate) struct MergeOperator {
    /// What is looked for.
    pub(crate) matching: Pipeline,
    /// What is created if there is none.
    pub(crate) creation: Creation,
    /// What is set then.
    pub(crate) on_create: Vec<SetItem>,
    /// What is set if there is one.
    pub(crate) on_match: Vec<SetItem>,
    /// The slots that it binds.
    pub(crate) introduced: Vec<Slot>,
    /// Nodes that must be there, for a pattern with null for one of them is an error.
    pub(crate) bound: Vec<Slot>,
    /// What the row must have beside: property values that are no null.
    pub(crate) values: Vec<(Arc<str>, Expression)>,
}
