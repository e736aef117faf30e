//! Which functions there are.

use crate::context::Context;
use crate::error::Result;
use crate::value::Value;
use std::collections::HashMap;
use std::sync::LazyLock;

/// What computes a function from its arguments; there are as many as the function takes.
pub(super) type Computation = fn(&[Value], &mut Context<'_>) -> Result<Value>;

/// What a function does about an argument that is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nulls {
    /// It comes to null.
    Propagated,
    /// It looks at it.
    Regarded,
}

/// A function that is computed from one row.
pub struct Function {
    /// As it is written in the manual, and as an expression names it.
    pub name: &'static str,
    /// The least number of arguments.
    pub least: usize,
    /// The greatest number of arguments.
    pub most: usize,
    /// Whether it comes to the same for the same arguments within a statement: `rand()` does not.
    pub repeatable: bool,
    nulls: Nulls,
    compute: Computation,
}

impl Function {
    /// A function with `least` to `most` arguments that comes to null if one of them is.
    pub(super) const fn new(
        name: &'static str,
        least: usize,
        most: usize,
        compute: Computation,
    ) -> Self {
        Self { name, least, most, repeatable: true, nulls: Nulls::Propagated, compute }
    }

    /// The same function, looking at nulls itself.
    pub(super) const fn regarding_nulls(mut self) -> Self {
        self.nulls = Nulls::Regarded;
        self
    }

    /// The same function, coming to something else each time.
    pub(super) const fn unrepeatable(mut self) -> Self {
        self.repeatable = false;
        self
    }

    /// What it comes to for arguments, whose number has been checked.
    ///
    /// # Errors
    /// Arguments of types or sizes that it cannot take.
    pub fn call(&self, arguments: &[Value], context: &mut Context<'_>) -> Result<Value> {
        if self.nulls == Nulls::Propagated && arguments.iter().any(Value::is_null) {
            return Ok(Value::Null);
        }
        let before = context.budget.bytes_left();
        let value = (self.compute)(arguments, context)?;
        let charged = before.saturating_sub(context.budget.bytes_left());
        // Many charge for what they make before they make it; the others are charged here.
        let uncharged = value.share_of_outer_bytes().saturating_sub(charged);
        if uncharged > 0 {
            context.budget.charge_steps(uncharged / 256)?;
            context.budget.charge_bytes(uncharged)?;
        }
        Ok(value)
    }
}

/// All functions, in no order.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    TABLES.iter().flat_map(|table| table.iter())
}

/// The tables of functions, one for each kind.
static TABLES: &[&[Function]] = &[
    super::conversion::TABLE,
    super::entity::TABLE,
    super::lists::TABLE,
    super::math::TABLE,
    super::moments::TABLE,
    super::moments::DATE,
    super::moments::DATE_TIME,
    super::moments::LOCAL_DATE_TIME,
    super::moments::LOCAL_TIME,
    super::moments::TIME,
    super::spatial::TABLE,
    super::text::TABLE,
];

/// By names as they are written in the manual, which is how expressions name them, and in lower
/// case.
static BY_NAME: LazyLock<HashMap<String, &'static Function>> = LazyLock::new(|| {
    let lower = functions().map(|function| (function.name.to_ascii_lowercase(), function));
    lower.chain(functions().map(|function| (function.name.to_owned(), function))).collect()
});

/// The function of a name, in whatever case.
pub fn lookup(name: &str) -> Option<&'static Function> {
    match BY_NAME.get(name) {
        Some(function) => Some(function),
        None => BY_NAME.get(name.to_ascii_lowercase().as_str()).copied(),
    }
}
