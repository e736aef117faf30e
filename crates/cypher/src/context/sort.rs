//! Sorting within a budget: a comparison of large values takes long, and a sort has many.

use super::Budget;
use crate::error::Result;
use std::cmp::Ordering;

/// Rows that are sorted between two charges: some ms if they are small.
const RUN_ROWS: usize = 8_192;

/// Sorts rows stably by `order`, whose cost for two rows is at most the smaller of their `steps`.
///
/// # Errors
/// An exhausted budget.
pub fn sorted<T>(
    mut rows: Vec<T>,
    budget: &mut Budget,
    steps: fn(&T) -> u64,
    order: impl Fn(&T, &T) -> Ordering + Copy,
) -> Result<Vec<T>> {
    let length = rows.len();
    if length < 2 {
        return Ok(rows);
    }
    if length <= RUN_ROWS && rows.iter().all(|row| steps(row) == 0) {
        budget.charge_steps(length as u64 * u64::from(length.ilog2()) / 8)?;
        rows.sort_by(order);
        return Ok(rows);
    }
    let bytes = (length * size_of::<T>()) as u64;
    budget.charge_bytes(bytes)?;
    let upper = rows.split_off(length / 2);
    let mut lower = sorted(rows, budget, steps, order)?.into_iter().peekable();
    let mut upper = sorted(upper, budget, steps, order)?.into_iter().peekable();
    let mut merged = Vec::with_capacity(length);
    while let (Some(a), Some(b)) = (lower.peek(), upper.peek()) {
        budget.charge_steps(1 + steps(a).min(steps(b)))?;
        merged.extend(if order(a, b).is_gt() { upper.next() } else { lower.next() });
    }
    merged.extend(lower.chain(upper));
    budget.return_bytes(bytes);
    Ok(merged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_are_sorted_stably_whatever_they_cost(
            keys in proptest::collection::vec(0_u64..40, 0..300),
        ) {
            let rows: Vec<(u64, usize)> = keys.into_iter().zip(0..).collect();
            let mut expected = rows.clone();
            expected.sort();
            for steps in [|_: &(u64, usize)| 0, |row: &(u64, usize)| row.0] {
                let mut budget = Budget::new(u64::MAX, 1 << 20, || None);
                let came = sorted(rows.clone(), &mut budget, steps, |a, b| a.0.cmp(&b.0))?;
                prop_assert_eq!(&came, &expected);
                prop_assert_eq!(budget.bytes_left(), 1 << 20);
            }
        }
    }

    #[test]
    fn a_sort_ends_with_its_budget() {
        let rows: Vec<u64> = (0..100_000).rev().collect();
        let mut budget = Budget::new(50_000, 1 << 30, || None);
        assert!(sorted(rows, &mut budget, |_| 1, Ord::cmp).is_err());
    }
}
