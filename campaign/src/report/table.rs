//! Columns of text: the first left-aligned when it holds words, numbers right-aligned.

/// A table being made.
pub(super) struct Table<const N: usize> {
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    pub(super) fn new(heading: [String; N]) -> Self {
        Self { rows: vec![heading] }
    }

    pub(super) fn row(&mut self, row: [String; N]) {
        self.rows.push(row);
    }

    /// The table, each line indented by two blanks.
    pub(super) fn render(&self) -> String {
        let width = |column: usize| {
            self.rows
                .iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let numeric = |column: usize| {
            self.rows
                .iter()
                .skip(1)
                .all(|row| row[column].starts_with(|c: char| c.is_ascii_digit() || "+-[".contains(c)))
        };
        let columns: Vec<(usize, bool)> = (0..N).map(|column| (width(column), numeric(column))).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::from("  ");
            for (cell, (width, numeric)) in row.iter().zip(&columns) {
                let padding = " ".repeat(width - cell.chars().count());
                if *numeric {
                    line.push_str(&padding);
                    line.push_str(cell);
                } else {
                    line.push_str(cell);
                    line.push_str(&padding);
                }
                line.push_str("  ");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}
