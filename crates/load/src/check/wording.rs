//! How figures are written in the sentences of the checks.

pub(crate) use crate::numbers::{
    count, counted, duration, percent, quantile_name as quantile, rate, significant as three_digits,
};
