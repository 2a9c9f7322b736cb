//! `gapless bench report`: one HTML page of what `--json` of each benchmark wrote: the published tables with ours next
//! to them, the peers of the same run, and pictures. The same JSON gives the same page, byte for byte.
//!
//! | module | what lives there |
//! |---|---|
//! | `runs` | JSON files: found, read, in the order in which they answer |
//! | `answers` | our rows and those of peers for each published figure |
//! | `summary` | the ten lines on top |
//! | `sections` | the five tables with their pictures and runs, and the list of all runs |
//! | `commands` | the command of a single row |
//! | `peers` | other systems in the runs of calls and commands |
//! | `kills` | tables of killed processes |
//! | `over_kafka` | the table of calls over Kafka |
//! | `pictures` | charts drawn from runs |
//! | `chart` | one chart as SVG |
//! | `html` | escaping, tables, ratios |

mod answers;
mod chart;
mod commands;
mod html;
mod kills;
mod over_kafka;
mod peers;
mod pictures;
mod runs;
mod sections;
mod summary;

use crate::Result;
use clap::Args;
use gapless_measure::BenchError;
use gapless_measure::reporting::output_path;
use runs::StoredRuns;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

const STYLE: &str = include_str!("style.css");

/// Options of the report.
#[derive(Debug, Clone, Args)]
pub struct ReportArguments {
    /// JSON files, or directories of them; for each figure the newest run counts
    #[arg(required = true, value_name = "PATH")]
    pub from: Vec<PathBuf>,

    /// File of the page; - is stdout
    #[arg(long, value_name = "FILE.html", default_value = "report.html", value_parser = output_path())]
    pub output: PathBuf,
}

/// Writes the page; returns the text to print, and warnings for stderr.
///
/// # Errors
/// A file that cannot be read or is no JSON of a benchmark, a directory without any, a page that cannot be written.
pub fn run(arguments: &ReportArguments) -> Result<(String, Vec<String>)> {
    let runs = StoredRuns::read(&arguments.from)?;
    let page = page(&runs);
    let (output, warnings) = (&arguments.output, runs.warnings().to_vec());
    if output == Path::new("-") {
        return match std::io::stdout().write_all(page.as_bytes()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(BenchError::system("write the page to stdout", error))
            }
            _ => Ok((String::new(), warnings)),
        };
    }
    let name = output.to_string_lossy();
    let refused = |reason: &str| Err(BenchError::Option(format!("--output {}: {reason}", name.escape_debug())));
    if runs.has_read(output) {
        return refused("it is one of the files that are read");
    }
    if output.extension().is_some_and(|extension| extension == "json") {
        return refused("it is a page, and the next report of its folder would read it as JSON");
    }
    std::fs::write(output, &page).map_err(|source| BenchError::io("write", output, source))?;
    let files = runs.all().len();
    Ok((format!("{}: {} KiB, {files} runs", name.escape_debug(), page.len() / 1024), warnings))
}

fn page(runs: &StoredRuns) -> String {
    let answered = answers::all(runs);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Gapless: published figures and ours</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
    );
    page += "<header>\n<h1>Gapless: published figures and ours</h1>\n";
    page += "<p>Five systems have published measurements. Each published figure stands here next to what Gapless measured, the \
        floor of the machine that measured it, and other systems in the same run.</p>\n";
    page += &sections::legend();
    page += "</header>\n";
    page += &summary::html(runs, &answered);
    page += &sections::contents();
    page += &sections::html(runs, &answered);
    page += &sections::all_runs(runs);
    page += "</main>\n</body>\n</html>\n";
    page
}

#[cfg(test)]
mod tests;
