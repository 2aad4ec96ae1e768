//! `kubectl campaign table`.

use campaign::report::layout::{self, Choice, Format};

use crate::arguments::{LayoutOptions, Scope, TableOutput};
use crate::{Failure, cluster, report};

pub(crate) async fn command(
    names: &[String],
    options: &LayoutOptions,
    output: TableOutput,
    scope: &Scope,
) -> Result<(), Failure> {
    let asked = choice(options)?;
    let format = match output {
        TableOutput::Text => Format::Text,
        TableOutput::Csv => Format::Csv,
        TableOutput::Markdown => Format::Markdown,
    };
    let (client, namespace) = cluster::connect(scope).await?;
    for (place, name) in names.iter().enumerate() {
        let campaign = cluster::campaign(client.clone(), &namespace, name).await?;
        let runs = report::runs(client.clone(), &namespace, &campaign).await?;
        let tables = layout::tables(&campaign, &runs, &asked, format)
            .map_err(|why| Failure::Layout(format!("{name}: {why}")))?;
        if names.len() > 1 && format != Format::Csv {
            println!("{}{name}", if place > 0 { "\n" } else { "" });
        }
        print!("{tables}");
    }
    Ok(())
}

/// The options as the words of a layout.
fn choice(options: &LayoutOptions) -> Result<Choice, Failure> {
    let mut choice = Choice::default();
    for (key, value) in [
        ("rows", &options.rows),
        ("columns", &options.columns),
        ("metrics", &options.metrics),
        ("percent-of", &options.percent_of),
        ("difference-from", &options.difference_from),
        ("statements-a-day", &options.statements_a_day),
        ("comparison", &options.comparison),
    ] {
        if let Some(value) = value {
            choice.set(key, value).map_err(Failure::Layout)?;
        }
    }
    Ok(choice)
}

#[cfg(test)]
mod tests {
    use campaign::report::layout::Choice;

    use super::{LayoutOptions, choice};

    #[test]
    fn options_say_what_a_line_says() {
        let options = LayoutOptions {
            rows: Some("Threads".into()),
            columns: Some("AuditSetting".into()),
            metrics: Some("Tps".into()),
            percent_of: Some("no-audit".into()),
            ..LayoutOptions::default()
        };
        let line = "rows=Threads columns=AuditSetting metrics=Tps percent-of=no-audit";
        assert_eq!(choice(&options).unwrap(), Choice::parse(line).unwrap());
        let wrong = LayoutOptions {
            rows: Some("Lines".into()),
            ..LayoutOptions::default()
        };
        assert!(
            choice(&wrong)
                .unwrap_err()
                .to_string()
                .contains("\"Lines\" is not one of")
        );
    }
}
