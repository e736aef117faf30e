//! Tables on a terminal.

/// A table under heads: columns as wide as what is in them.
pub(crate) fn table(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Vec<String> {
    let heads = heads.iter().map(|&head| head.to_owned()).collect::<Vec<_>>();
    aligned(&std::iter::once(heads).chain(rows).collect::<Vec<_>>())
}

/// Rows of as many cells each, one below the other.
pub(crate) fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_is_in_them() {
        let rows = [["ann", "admin"], ["a-long-name", "-"], ["ü", ""]];
        let rows = rows.into_iter().map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(
            table(&["ACCOUNT", "ROLES"], rows),
            ["ACCOUNT      ROLES", "ann          admin", "a-long-name  -", "ü"]
        );
        assert_eq!(aligned(&[]), Vec::<String>::new());
    }
}
