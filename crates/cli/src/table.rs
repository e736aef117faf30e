//! Tables on a terminal.

/// Columns that are as wide as what is in them.
pub(crate) fn table(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Vec<String> {
    let heads = heads.iter().map(|&head| head.to_owned()).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = std::iter::once(heads).chain(rows).collect();
    let columns = rows[0].len();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
