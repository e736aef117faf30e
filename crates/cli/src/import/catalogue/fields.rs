//! The sources of an item's fields: texts and cells of a row.

use crate::exit::Failure;

/// The fields that an item has.
const KNOWN: [&str; 7] = ["sku", "name", "description", "topic", "price", "currency", "stock"];
/// Those that it must have.
const NEEDED: [&str; 4] = ["sku", "name", "topic", "price"];

/// A field, and what it is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pieces: Vec<Piece>,
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// The cell of a column.
    Cell(usize),
    /// The number of the row, from 1.
    Row,
}

impl Field {
    /// The fields of a file with this header: those that are named, and columns of fields' names.
    ///
    /// # Errors
    /// Usage: there is no such field or column.
    pub(super) fn all(given: &[String], header: &[String]) -> Result<Vec<Field>, Failure> {
        let columns = header.join(", ");
        let mut fields: Vec<Field> = Vec::new();
        for given in given {
            let Some((name, template)) = given.split_once('=') else {
                return Err(Failure::usage(format!("--field {given} is not NAME=TEMPLATE")));
            };
            let Some(name) = KNOWN.into_iter().find(|known| *known == name) else {
                let known = KNOWN.join(", ");
                return Err(Failure::usage(format!(
                    "--field: an item has no field {name}; its fields: {known}"
                )));
            };
            if fields.iter().any(|field| field.name == name) {
                return Err(Failure::usage(format!("--field {name} is given twice")));
            }
            fields.push(Field { name, pieces: pieces(template, header)? });
        }
        let is_given = |fields: &[Field], name| fields.iter().any(|field| field.name == name);
        for name in KNOWN {
            let column = header.iter().position(|column| column == name);
            if let Some(column) = column.filter(|_| !is_given(&fields, name)) {
                fields.push(Field { name, pieces: vec![Piece::Cell(column)] });
            }
        }
        match NEEDED.into_iter().find(|name| !is_given(&fields, name)) {
            None => Ok(fields),
            Some(name) => Err(Failure::usage(format!(
                "there is no column {name}; define it with --field {name}=TEMPLATE, where {{COLUMN}} stands for a \
                 cell and {{#}} for the number of the row; the header has: {columns}"
            ))),
        }
    }

    /// The field in a row.
    pub(super) fn value<'a>(&self, row: u64, cell: impl Fn(usize) -> &'a str) -> String {
        let mut value = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => value.push_str(text),
                Piece::Cell(column) => value.push_str(cell(*column)),
                Piece::Row => value.push_str(&row.to_string()),
            }
        }
        value
    }
}

fn pieces(template: &str, header: &[String]) -> Result<Vec<Piece>, Failure> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((text, behind)) = rest.split_once('{') {
        if !text.is_empty() {
            pieces.push(Piece::Text(text.to_owned()));
        }
        let Some((name, behind)) = behind.split_once('}') else {
            return Err(Failure::usage(format!(
                "--field {template}: an opening brace is not closed"
            )));
        };
        pieces.push(match header.iter().position(|column| column == name) {
            Some(column) => Piece::Cell(column),
            None if name == "#" => Piece::Row,
            None => {
                let columns = header.join(", ");
                return Err(Failure::usage(format!(
                    "there is no column {name}; the header has: {columns}"
                )));
            }
        });
        rest = behind;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.to_owned()));
    }
    Ok(pieces)
}
