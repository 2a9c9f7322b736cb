//! Generates pages of `docs/reference` from the sources: error messages, limits, and keys of the files.

use crate::workspace::{root, sources};
use gapless_testkit::reference::{check, head, row, table};
use std::path::Path;

/// Crates whose errors and limits an application meets.
const CRATES: [&str; 14] = [
    "agent",
    "client",
    "cluster",
    "config",
    "cqrs",
    "engine",
    "journal",
    "kafka",
    "log",
    "message",
    "rpc",
    "stream",
    "supervisor",
    "transport",
];

/// Errors of formats and cores: a public error of the same crate wraps them.
const INNER_ERRORS: [&str; 12] = [
    "AppendError",
    "ConsensusError",
    "DecodeError",
    "MembersError",
    "OptionsError",
    "ProposeError",
    "RecordError",
    "RecoveryError",
    "SendError",
    "SnapshotTransferError",
    "StepError",
    "WireError",
];

/// Message of an error that wraps another.
const WRAPPED: &str = "the source's";

#[test]
fn errors_match_reference() {
    let mut page = page("Errors", "the error types", "errors_match_reference");
    page += "\n`{…}` is a value. A message `…` is made by code. `the source's` is the message of the wrapped error.\n";
    let mut count = 0;
    for (name, path) in files() {
        let text = std::fs::read_to_string(&path).expect("a source can be read");
        for (error, variants) in errors(&text) {
            if variants.is_empty() || INNER_ERRORS.contains(&error.as_str()) {
                continue;
            }
            table(&mut page, &format!("{error} (gapless-{name})"), ["error", "message", "meaning, and what to do"]);
            // A wrapped error without advice says all by itself.
            for [variant, message, meaning] in
                variants.iter().filter(|[_, message, meaning]| message != WRAPPED || !meaning.is_empty())
            {
                row(&mut page, [&format!("`{variant}`"), message, meaning]);
            }
            count += variants.len();
        }
    }
    assert!(count > 150, "only {count} errors were found");
    check("errors.md", &page);
}

#[test]
fn limits_match_reference() {
    let mut page = page("Limits", "the public constants", "limits_match_reference");
    let mut count = 0;
    for name in CRATES {
        let mut rows = Vec::new();
        for path in sources(&root().join(format!("crates/gapless-{name}/src"))) {
            rows.extend(limits(&std::fs::read_to_string(path).expect("a source can be read")));
        }
        if !rows.is_empty() {
            count += rows.len();
            table(&mut page, &format!("gapless-{name}"), ["constant", "value", "meaning"]);
            rows.iter().for_each(|[constant, value, meaning]| row(&mut page, [constant, value, meaning]));
        }
    }
    assert!(count > 50, "only {count} limits were found");
    check("limits.md", &page);
}

#[test]
fn counters_match_reference() {
    let mut page = page("Counters", "the sources", "counters_match_reference");
    page += "\n`gapless counters DIRECTORY` and `gapless top` show those of a node. A label that begins with a dot has the name of its\n\
             network before it: `gateway` (UDP, multicast) or `tcp-gateway`.\n";
    let mut found = std::collections::BTreeMap::new();
    let mut structures = Vec::new();
    for (name, path) in files() {
        let text = std::fs::read_to_string(&path).expect("a source can be read");
        if ["stream", "engine", "cqrs"].contains(&name) {
            found.extend(counters(&text));
        }
        structures.extend(STATISTICS.into_iter().filter_map(|(of, shown)| Some((shown, statistics(of, &text)?))));
    }
    assert!(found.len() > 60, "only {} counters were found", found.len());
    let undocumented: Vec<&String> =
        found.iter().filter(|(_, meaning)| meaning.is_empty()).map(|(label, _)| label).collect();
    assert!(undocumented.is_empty(), "without documentation: {undocumented:?}");
    table(&mut page, "A node, a service, a member, a command bus", ["counter", "meaning"]);
    found.iter().for_each(|(label, meaning)| row(&mut page, [&format!("`{label}`"), meaning]));
    assert_eq!(structures.len(), STATISTICS.len());
    for (shown, fields) in structures {
        table(&mut page, shown, ["field", "meaning"]);
        fields.iter().for_each(|[field, meaning]| row(&mut page, [&format!("`{field}`"), meaning]));
    }
    check("counters.md", &page);
}

/// Structures of counters, with the commands that show them.
const STATISTICS: [(&str, &str); 3] = [
    ("CallStatistics", "Calls of a route by one process (`gapless routes`)"),
    ("InstanceStatistics", "Instance of a route (`gapless routes`)"),
    ("Counters", "Bridge (`gapless bridge status`)"),
];

#[test]
fn file_keys_match_reference() {
    let mut page = page("Keys of files", "the annotated files in `docs/guides`", "file_keys_match_reference");
    page += "\nA key without a default is left out by default. Sizes are bytes or texts such as `\"64 KiB\"`, durations seconds or\n\
             texts such as `\"200 ms\"`. `gapless validate`, `gapless stream`, `gapless cluster` and `gapless bridge kafka --check`\n\
             name the line of an error.\n";
    for file in ["stream.toml", "cluster.toml", "supervisor.toml", "bridge.toml"] {
        let text = std::fs::read_to_string(root().join("docs/guides").join(file)).expect("the file can be read");
        let keys = file_keys(&text);
        assert!(keys.len() > 10, "only {} keys were found in {file}", keys.len());
        let mut section = None;
        for (of, [key, default, meaning]) in &keys {
            if section != Some(of) {
                let shown = of.replace("[process.calculator", "[process.NAME");
                table(&mut page, &format!("{file} {shown}"), ["key", "default", "meaning"]);
                section = Some(of);
            }
            let (default, meaning) = match meaning.strip_prefix("Required. ") {
                Some(meaning) => (format!("required, such as {}", code(default)), meaning),
                None => (code(default), meaning.as_str()),
            };
            row(&mut page, [&format!("`{key}`"), &default, meaning]);
        }
    }
    check("files.md", &page);
}

fn page(title: &str, source: &str, test: &str) -> String {
    head(title, source, &format!("-p gapless-testkit --test workspace {test}"))
}

fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

/// Returns all sources of [`CRATES`] without tests.
fn files() -> Vec<(&'static str, std::path::PathBuf)> {
    let is_test = |path: &Path| path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("test"));
    let of_crate = |name| {
        let found = sources(&root().join(format!("crates/gapless-{name}/src")));
        found.into_iter().filter(|path| !is_test(path)).map(move |path| (name, path))
    };
    CRATES.into_iter().flat_map(of_crate).collect()
}

/// Finds the public error enums of a source, with variant, message and documentation of each variant.
fn errors(text: &str) -> Vec<(String, Vec<[String; 3]>)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(rest) = line.strip_prefix("pub enum ") else { continue };
        let name: String = rest.chars().take_while(|one| one.is_alphanumeric()).collect();
        if name.ends_with("Error") {
            let body = lines.by_ref().take_while(|line| *line != "}").collect::<Vec<_>>();
            found.push((name, variants(&body)));
        }
    }
    found
}

fn variants(body: &[&str]) -> Vec<[String; 3]> {
    let mut found = Vec::new();
    let (mut meaning, mut attribute, mut is_attribute) = (String::new(), String::new(), false);
    for line in body {
        let Some(inner) = line.strip_prefix("    ").filter(|_| is_attribute || !line.starts_with("     ")) else {
            continue;
        };
        if let Some(text) = inner.strip_prefix("///") {
            meaning += text;
        } else if is_attribute || inner.starts_with("#[error(") {
            attribute += inner.trim_start();
            attribute.push('\n');
            is_attribute = !inner.ends_with(")]");
        } else if inner.starts_with(|first: char| first.is_ascii_uppercase()) {
            let variant: String = inner.chars().take_while(|one| one.is_alphanumeric()).collect();
            if !attribute.is_empty() {
                found.push([variant, message(&attribute), plain(&meaning)]);
            }
            meaning.clear();
            attribute.clear();
        }
    }
    found
}

/// Returns the message of an `#[error(…)]`: its text, with `{…}` for each value.
fn message(attribute: &str) -> String {
    if attribute.starts_with("#[error(transparent)]") {
        return WRAPPED.to_owned();
    }
    let Some(start) = attribute.find('"') else { return "…".to_owned() };
    let (mut text, mut depth) = (String::new(), 0);
    let mut rest = attribute[start + 1..].chars().peekable();
    while let Some(one) = rest.next() {
        match one {
            '"' => break,
            '\\' if rest.peek() == Some(&'\n') => while rest.next_if(|next| next.is_whitespace()).is_some() {},
            '\\' => text.extend(rest.next().map(|next| if next == 'n' { ' ' } else { next })),
            '{' if rest.peek() == Some(&'{') => text.extend(rest.next()),
            '{' => {
                depth = 1;
                text.push_str("{…}");
            }
            '}' if depth == 1 => depth = 0,
            '}' => text.extend(rest.next()),
            _ if depth == 0 => text.push(one),
            _ => {}
        }
    }
    if text == "{…}" { "…".to_owned() } else { text }
}

/// Finds labels of counters with their documentation: fields of `counters!`, and constants that are added.
fn counters(text: &str) -> Vec<(String, String)> {
    let (mut found, mut meaning) = (Vec::new(), String::new());
    let is_label = |label: &str| {
        label.contains('.') && label.chars().all(|one| one.is_ascii_lowercase() || ['.', '_', '-'].contains(&one))
    };
    for line in text.lines().map(str::trim_start) {
        if let Some(text) = line.strip_prefix("///") {
            meaning += text;
            continue;
        }
        let meaning = std::mem::take(&mut meaning);
        let constant = line.strip_prefix("pub(crate) ").unwrap_or(line).strip_prefix("const ");
        let label = match constant.and_then(|rest| rest.split_once(": &str = \"")) {
            Some((_, rest)) => rest
                .strip_suffix("\";")
                .filter(|label| ["journal.", "service.", "sync."].iter().any(|of| label.starts_with(of))),
            None => line.split_once(": \"").and_then(|(_, rest)| rest.strip_suffix("\",")),
        };
        if let Some(label) = label.filter(|label| is_label(label)) {
            found.push((label.to_owned(), plain(&meaning)));
        }
    }
    found
}

/// Returns the public fields of a structure with their documentation.
fn statistics(name: &str, text: &str) -> Option<Vec<[String; 2]>> {
    let body = text.split_once(&format!("\npub struct {name} {{\n"))?.1.split_once("\n}\n")?.0;
    let (mut found, mut meaning) = (Vec::new(), String::new());
    for line in body.lines().map(str::trim_start) {
        if let Some(text) = line.strip_prefix("///") {
            meaning += text;
        } else if let Some((field, "u64,")) = line.strip_prefix("pub ").and_then(|rest| rest.split_once(": ")) {
            found.push([field.to_owned(), plain(&std::mem::take(&mut meaning))]);
        }
    }
    (found.len() > 3).then_some(found)
}

/// Finds the public constants of a source whose name ends as that of a limit and that are documented.
fn limits(text: &str) -> Vec<[String; 3]> {
    let (mut found, mut meaning) = (Vec::new(), String::new());
    for line in text.lines().map(str::trim_start) {
        if let Some(text) = line.strip_prefix("///") {
            meaning += text;
            continue;
        }
        let meaning = std::mem::take(&mut meaning);
        let constant = line.strip_prefix("pub const ").and_then(|rest| rest.split_once(": "));
        if let Some((name, (_, value))) = constant.and_then(|(name, rest)| Some((name, rest.split_once(" = ")?)))
            && ["_MAX", "_MIN", "_LIMIT"].iter().any(|end| name.contains(end))
            && !meaning.is_empty()
        {
            found.push([format!("`{name}`"), value_shown(value.trim_end_matches(';')), plain(&meaning)]);
        }
    }
    found
}

/// Returns the value of `2_000` and `16 << 20` with units of 1,024, and of another expression the expression.
fn value_shown(expression: &str) -> String {
    let number = |text: &str| text.replace('_', "").parse::<u64>().ok();
    let duration = expression.strip_prefix("Duration::from_").and_then(|rest| rest.strip_suffix(')'));
    if let Some((unit, count)) = duration.and_then(|rest| rest.split_once('(')) {
        return format!("{count} {}", unit.replace("secs", "s").replace("millis", "ms"));
    }
    let (factor, shift) = expression.split_once(" << ").unwrap_or((expression, "0"));
    let shifted = number(factor).zip(number(shift)).and_then(|(factor, shift)| factor.checked_shl(shift as u32));
    let Some(value) = shifted.filter(|value| *value < 1 << 50) else {
        return code(expression);
    };
    let units = [(40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")];
    let unit = units.into_iter().find(|(bits, _)| shift != "0" && value >= 1 << bits && value % (1 << bits) == 0);
    match unit {
        Some((bits, unit)) => format!("{} {unit}", value >> bits),
        None => thousands(value),
    }
}

fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let parts: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|part| std::str::from_utf8(part).expect("digits")).collect();
    parts.join(",")
}

/// Returns documentation without links of rustdoc, as one line.
fn plain(documentation: &str) -> String {
    let mut text = documentation.split_whitespace().collect::<Vec<_>>().join(" ");
    while let Some(start) = text.find("](") {
        let end = text[start..].find(')').map_or(text.len(), |end| start + end + 1);
        text.replace_range(start..end, "");
        if let Some(open) = text[..start].rfind('[') {
            text.remove(open);
        }
    }
    text.replace("[`", "`").replace("`]", "`")
}

/// Returns the keys of an annotated file with their section, default and comment. `#key = value` and `#~ key = value`
/// are keys without a default.
fn file_keys(text: &str) -> Vec<(String, [String; 3])> {
    let (mut found, mut comment, mut section) = (Vec::<(String, [String; 3])>::new(), String::new(), String::new());
    for line in text.lines() {
        let (line, has_default) = match line.strip_prefix("#~ ").or(line.strip_prefix('#')) {
            Some(rest) if !rest.starts_with(' ') && (rest.contains(" = ") || rest.starts_with('[')) => (rest, false),
            _ => (line, true),
        };
        if line.starts_with('[') {
            section = line.to_owned();
            comment.clear();
        } else if let Some(text) = line.strip_prefix('#') {
            comment += text;
        } else if let Some((key, value)) = line.split_once(" = ") {
            let is_known = found.iter().any(|(of, [known, ..])| *of == section && known == key);
            let default = if has_default { value } else { "" };
            if !is_known && !comment.is_empty() {
                found.push((section.clone(), [key.to_owned(), default.to_owned(), plain(&comment)]));
            }
            comment.clear();
        } else {
            comment.clear();
        }
    }
    found
}

#[test]
fn messages_are_read_from_attributes() {
    let body = [
        "    /// No room. [`Full`](crate::Full) says",
        "    /// more.",
        "    #[error(\"no room for {needed} of \\",
        "             {}; try \\\"again\\\"\", path.display())]",
        "    Full { needed: u64 },",
        "    #[error(transparent)]",
        "    Io(io::Error),",
    ];
    let found = variants(&body);
    assert_eq!(found[0], ["Full", "no room for {…} of {…}; try \"again\"", "No room. `Full` says more."]);
    assert_eq!(found[1], ["Io", "the source's", ""]);
}

#[test]
fn values_of_limits_are_computed() {
    let expressions = ["1 << 40", "16 << 20", "65_536", "A + B", "Duration::from_secs(5)"];
    assert_eq!(expressions.map(value_shown), ["1 Ti", "16 Mi", "65,536", "`A + B`", "5 s"]);
}
