//! The catalogue of functions.

use super::arguments::Outlines;
use crate::context::Context;
use crate::error::Result;
use crate::value::{Value, steps_of};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Computes a function from its arguments, whose number is valid and whose size is charged.
pub(super) type Computation = fn(&[Value], &mut Context<'_>) -> Result<Value>;

/// How a function is computed. Only [`Function::call`] does that, so no function sees more of an
/// argument than has been charged.
#[derive(Clone, Copy)]
pub(super) enum Computed {
    /// From whole arguments.
    Whole(Computation),
    /// In constant time, from the outlines of arguments of any size.
    Outlined(fn(Outlines<'_>, &mut Context<'_>) -> Result<Value>),
}

/// How a function treats null arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nulls {
    /// The result is null.
    Propagated,
    /// The function handles nulls itself.
    Regarded,
}

/// A function computed from one row.
pub struct Function {
    /// Its name as in the manual and in expressions.
    pub name: &'static str,
    /// Minimum number of arguments.
    pub least: usize,
    /// Maximum number of arguments.
    pub most: usize,
    /// Whether it returns the same value for the same arguments within a statement; `rand()` does
    /// not.
    pub repeatable: bool,
    nulls: Nulls,
    pub(super) computed: Computed,
}

impl Function {
    /// A function with `least` to `most` arguments that returns null if one of them is null.
    pub(super) const fn new(
        name: &'static str,
        least: usize,
        most: usize,
        compute: Computation,
    ) -> Self {
        let computed = Computed::Whole(compute);
        Self { name, least, most, repeatable: true, nulls: Nulls::Propagated, computed }
    }

    /// The same for a function that takes constant time.
    pub(super) const fn outlined(
        name: &'static str,
        least: usize,
        most: usize,
        compute: fn(Outlines<'_>, &mut Context<'_>) -> Result<Value>,
    ) -> Self {
        let computed = Computed::Outlined(compute);
        Self { name, least, most, repeatable: true, nulls: Nulls::Propagated, computed }
    }

    /// The same function, handling nulls itself.
    pub(super) const fn regarding_nulls(mut self) -> Self {
        self.nulls = Nulls::Regarded;
        self
    }

    /// The same function, not repeatable.
    pub(super) const fn unrepeatable(mut self) -> Self {
        self.repeatable = false;
        self
    }

    /// Calls the function with a valid number of arguments, and charges their size before.
    ///
    /// # Errors
    /// Arguments of types or sizes that it does not accept; an exhausted budget.
    pub fn call(&self, arguments: &[Value], context: &mut Context<'_>) -> Result<Value> {
        if self.nulls == Nulls::Propagated && arguments.iter().any(Value::is_null) {
            return Ok(Value::Null);
        }
        let before = context.budget.bytes_left();
        let value = match self.computed {
            Computed::Whole(compute) => {
                context.budget.charge_steps(steps_of(arguments))?;
                compute(arguments, context)?
            }
            Computed::Outlined(compute) => compute(Outlines::of(arguments), context)?,
        };
        let charged = before.saturating_sub(context.budget.bytes_left());
        // Many functions charge for their result before they create it; the others are charged
        // here.
        let uncharged = value.share_of_outer_bytes().saturating_sub(charged);
        if uncharged > 0 {
            context.budget.charge_steps(uncharged / 64)?;
            context.budget.charge_bytes(uncharged)?;
        }
        Ok(value)
    }
}

/// All functions in unspecified order.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    listed().map(|(function, _)| function)
}

/// All functions with their categories in Neo4j's words.
pub(crate) fn listed() -> impl Iterator<Item = (&'static Function, &'static str)> {
    TABLES.iter().flat_map(|(category, table)| table.iter().map(move |it| (it, *category)))
}

/// The tables of functions, by category.
static TABLES: &[(&str, &[Function])] = &[
    ("Scalar", super::conversion::TABLE),
    ("Scalar", super::entity::TABLE),
    ("List", super::lists::TABLE),
    ("Numeric", super::math::TABLE),
    ("Temporal", super::moments::TABLE),
    ("Temporal", super::moments::DATE),
    ("Temporal", super::moments::DATE_TIME),
    ("Temporal", super::moments::LOCAL_DATE_TIME),
    ("Temporal", super::moments::LOCAL_TIME),
    ("Temporal", super::moments::TIME),
    ("Spatial", super::spatial::TABLE),
    ("String", super::text::TABLE),
    ("Vector", super::vectors::TABLE),
    ("APOC", super::apoc::TABLE),
];

/// By name as in the manual, which expressions use, and in lower case.
static BY_NAME: LazyLock<HashMap<String, &'static Function>> = LazyLock::new(|| {
    let lower = functions().map(|function| (function.name.to_ascii_lowercase(), function));
    lower.chain(functions().map(|function| (function.name.to_owned(), function))).collect()
});

/// The function with this name, ignoring case.
pub fn lookup(name: &str) -> Option<&'static Function> {
    match BY_NAME.get(name) {
        Some(function) => Some(function),
        None => BY_NAME.get(name.to_ascii_lowercase().as_str()).copied(),
    }
}
