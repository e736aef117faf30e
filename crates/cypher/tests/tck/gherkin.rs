//! Reads the part of Gherkin that the kit uses: scenarios with steps, texts, tables, outlines with
//! examples, a background.

/// A scenario with all placeholders filled in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scenario {
    /// For example `[3] Fail when …`, and `#2` for the second example.
    pub(crate) name: String,
    /// Its steps, those of the background first.
    pub(crate) steps: Vec<Step>,
}

/// A line that begins with Given, When, Then, And or But, and its attachments.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Step {
    /// The line without its first word.
    pub(crate) line: String,
    /// The text between `"""`.
    pub(crate) text: Option<String>,
    /// The cells of its table.
    pub(crate) table: Vec<Vec<String>>,
}

/// The state of the reader.
#[derive(Default)]
struct Reader {
    background: Vec<Step>,
    scenarios: Vec<Scenario>,
    current: Option<Outline>,
}

#[derive(Default)]
struct Outline {
    name: String,
    background: bool,
    steps: Vec<Step>,
    /// Each with its header.
    examples: Vec<Vec<Vec<String>>>,
}

/// The scenarios of a feature file in order, outlines expanded.
pub(crate) fn scenarios(feature: &str) -> Vec<Scenario> {
    let mut reader = Reader::default();
    let mut lines = feature.lines();
    while let Some(raw) = lines.next() {
        let line = raw.trim();
        if line.starts_with('#') || line.starts_with('@') || line.is_empty() {
            continue;
        }
        if line == "\"\"\"" {
            let indentation = raw.len() - raw.trim_start().len();
            let text: Vec<&str> = lines
                .by_ref()
                .take_while(|line| line.trim() != "\"\"\"")
                .map(|line| dedented(line, indentation))
                .collect();
            if let Some(step) = reader.current.as_mut().and_then(|outline| outline.steps.last_mut())
            {
                step.text = Some(text.join("\n"));
            }
        } else if line.starts_with('|') {
            reader.row(cells(line));
        } else {
            reader.line(line);
        }
    }
    reader.close();
    reader.scenarios
}

fn dedented(line: &str, indentation: usize) -> &str {
    let spaces = line.len() - line.trim_start().len();
    line.get(indentation.min(spaces)..).unwrap_or("")
}

impl Reader {
    fn line(&mut self, line: &str) {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match word {
            "Feature:" => {}
            "Background:" => self.open("", true),
            "Scenario:" => self.open(rest, false),
            "Scenario" => self.open(rest.trim_start_matches("Outline:"), false),
            "Examples:" => {
                if let Some(outline) = &mut self.current {
                    outline.examples.push(Vec::new());
                }
            }
            "Given" | "When" | "Then" | "And" | "But" => {
                if let Some(outline) = &mut self.current {
                    outline.steps.push(Step { line: rest.trim().to_owned(), ..Step::default() });
                }
            }
            _ => panic!("A line that is no Gherkin as the kit uses it: {line}"),
        }
    }

    fn row(&mut self, cells: Vec<String>) {
        let Some(outline) = &mut self.current else { return };
        if let Some(examples) = outline.examples.last_mut() {
            examples.push(cells);
        } else if let Some(step) = outline.steps.last_mut() {
            step.table.push(cells);
        }
    }

    fn open(&mut self, name: &str, background: bool) {
        self.close();
        let name = name.trim().to_owned();
        self.current = Some(Outline { name, background, ..Outline::default() });
    }

    fn close(&mut self) {
        let Some(outline) = self.current.take() else { return };
        if outline.background {
            self.background = outline.steps;
            return;
        }
        let steps: Vec<Step> = self.background.iter().cloned().chain(outline.steps).collect();
        if outline.examples.is_empty() {
            self.scenarios.push(Scenario { name: outline.name, steps });
            return;
        }
        let mut number = 0;
        for table in &outline.examples {
            let Some((header, rows)) = table.split_first() else { continue };
            for row in rows {
                number += 1;
                let steps = steps.iter().map(|step| filled(step, header, row)).collect();
                let name = format!("{} #{number}", fill(&outline.name, header, row));
                self.scenarios.push(Scenario { name, steps });
            }
        }
    }
}

/// The step with `<name>` replaced everywhere.
fn filled(step: &Step, header: &[String], row: &[String]) -> Step {
    let fill = |text: &String| {
        header
            .iter()
            .zip(row)
            .fold(text.clone(), |text, (name, value)| text.replace(&format!("<{name}>"), value))
    };
    Step {
        line: fill(&step.line),
        text: step.text.as_ref().map(fill),
        table: step.table.iter().map(|cells| cells.iter().map(fill).collect()).collect(),
    }
}

fn fill(text: &str, header: &[String], row: &[String]) -> String {
    header
        .iter()
        .zip(row)
        .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("<{name}>"), value))
}

/// The cells of a row; `\|` is a bar within one.
fn cells(line: &str) -> Vec<String> {
    let mut cells = Vec::new();
    let mut cell = String::new();
    let mut characters = line.trim_start_matches('|').chars();
    while let Some(character) = characters.next() {
        match character {
            '|' => cells.push(std::mem::take(&mut cell).trim().to_owned()),
            '\\' => match characters.next() {
                Some('n') => cell.push('\n'),
                Some(escaped @ ('|' | '\\')) => cell.push(escaped),
                Some(other) => cell.extend(['\\', other]),
                None => cell.push('\\'),
            },
            other => cell.push(other),
        }
    }
    cells
}

/// Called by the kit before the scenarios: it has no test harness.
pub(crate) fn check() {
    let read = scenarios(
        "Feature: F\n\n  Background:\n    Given any graph\n\n  @tag\n  Scenario Outline: [1] Outline\n    When executing query:\n      \"\"\"\n      RETURN\n        <a>\n      \"\"\"\n    Then the result should be, in any order:\n      | x   |\n      | <a> |\n\n    Examples:\n      | a |\n      | '\\|' |\n      # | not |\n      | 2 |\n\n  Scenario: [2] Plain\n    And no side effects\n",
    );
    let names: Vec<&str> = read.iter().map(|scenario| scenario.name.as_str()).collect();
    assert_eq!(names, ["[1] Outline #1", "[1] Outline #2", "[2] Plain"]);
    assert_eq!(read[0].steps[0].line, "any graph");
    assert_eq!(read[0].steps[1].text.as_deref(), Some("RETURN\n  '|'"));
    assert_eq!(read[1].steps[2].table, [["x"], ["2"]]);
    assert_eq!(read[2].steps.len(), 2);
}
