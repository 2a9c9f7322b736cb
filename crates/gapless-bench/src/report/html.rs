//! Escaping, ratios, and tables that scroll within themselves.

use gapless_measure::Row;
pub(super) use gapless_measure::table::time;
use gapless_measure::table::{absent, grouped};
use std::fmt::Write as _;

/// Escapes elements and quoted attributes. Control characters, which HTML forbids, become a replacement character.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\n' | '\t' => escaped.push(' '),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[derive(Clone, Copy)]
pub(super) enum HtmlColumn<'a> {
    Text(&'a str),
    Number(&'a str),
}

pub(super) enum HtmlCell {
    Text(String),
    Html(String),
    /// Class and words.
    Verdict(&'static str, String),
}

pub(super) struct HtmlTable<'a> {
    columns: &'a [HtmlColumn<'a>],
    caption: String,
    body: String,
}

impl<'a> HtmlTable<'a> {
    pub(super) fn new(caption: &str, columns: &'a [HtmlColumn<'a>]) -> Self {
        Self { columns, caption: caption.to_owned(), body: String::new() }
    }

    pub(super) fn group(&mut self, text: &str) {
        let (width, text) = (self.columns.len(), escape(text));
        let _ = writeln!(
            self.body,
            "<tr class=\"group\"><th colspan=\"{width}\" scope=\"rowgroup\"><span>{text}</span></th></tr>"
        );
    }

    pub(super) fn row(&mut self, cells: Vec<HtmlCell>) {
        assert_eq!(cells.len(), self.columns.len(), "a cell for each column of {}", self.caption);
        self.body += "<tr>";
        for (number, (cell, column)) in cells.into_iter().zip(self.columns).enumerate() {
            let name = if number == 0 { "th" } else { "td" };
            let scope = if number == 0 { " scope=\"row\"" } else { "" };
            let class = if matches!(column, HtmlColumn::Number(_)) { " class=\"n\"" } else { "" };
            let _ = match cell {
                HtmlCell::Text(text) => write!(self.body, "<{name}{scope}{class}>{}</{name}>", escape(&text)),
                HtmlCell::Html(html) => write!(self.body, "<{name}{scope}{class}>{html}</{name}>"),
                HtmlCell::Verdict(class, words) => {
                    write!(self.body, "<{name}{scope} class=\"v {class}\">{}</{name}>", escape(&words))
                }
            };
        }
        self.body += "</tr>\n";
    }

    pub(super) fn width(&self) -> usize {
        self.columns.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    pub(super) fn html(&self) -> String {
        let caption = escape(&self.caption);
        let mut html = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">\n<table>\n\
             <caption><span>{caption}</span></caption>\n<thead><tr>"
        );
        for column in self.columns {
            let (class, name) = match column {
                HtmlColumn::Text(name) => ("", name),
                HtmlColumn::Number(name) => (" class=\"n\"", name),
            };
            let _ = write!(html, "<th scope=\"col\"{class}>{}</th>", escape(name));
        }
        html + "</tr></thead>\n<tbody>\n" + &self.body + "</tbody>\n</table>\n</div>\n"
    }
}

pub(super) fn text(value: impl Into<String>) -> HtmlCell {
    HtmlCell::Text(value.into())
}

pub(super) fn nothing() -> HtmlCell {
    HtmlCell::Text(absent())
}

pub(super) fn verified(row: &Row) -> HtmlCell {
    match row.verified {
        Some(true) => text("yes"),
        Some(false) => HtmlCell::Verdict("missed", "NO".to_owned()),
        None => nothing(),
    }
}

pub(super) fn word(by_peer: f64) -> (&'static str, &'static str) {
    match by_peer {
        better if better > 1.0 => ("ahead", "ahead"),
        worse if worse < 1.0 => ("behind", "behind"),
        nan if nan.is_nan() => ("nobody", "not compared"),
        _ => ("level", "level"),
    }
}

pub(super) fn ratio(value: f64) -> String {
    match value {
        value if !value.is_finite() => absent(),
        value if value < 0.1 => format!("{value:.3} ×"),
        value if value < 10.0 => format!("{value:.2} ×"),
        value if value < 100.0 => format!("{value:.1} ×"),
        value => format!("{} ×", grouped(value.round() as u64)),
    }
}
