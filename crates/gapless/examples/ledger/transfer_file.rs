use crate::lines::Lines;
use crate::transfer::HEADER;
use std::error::Error;
use std::fs::File;
use std::path::Path;

pub type Failure = Box<dyn Error>;

/// Checks the header.
pub fn open(path: &Path) -> Result<Lines, Failure> {
    let about = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    // Checked before opening: opening a pipe without a writer would block forever.
    let is_file = std::fs::metadata(path).map_err(about)?.is_file();
    let file = is_file.then(|| File::open(path)).transpose().map_err(about)?;
    let Some(file) = file else {
        return Err(format!("{} is not a regular file; a file is read again after a kill", path.display()).into());
    };
    let mut lines = Lines::new(file);
    if !lines.next().map_err(about)? {
        return Err(format!("{} is empty; its first line must be {HEADER}", path.display()).into());
    }
    let found = lines.text().strip_prefix(b"\xef\xbb\xbf").unwrap_or(lines.text());
    if found != HEADER.as_bytes() {
        let found = shown(found);
        return Err(format!("{}, line 1: the header {HEADER} was expected, found: {found}", path.display()).into());
    }
    Ok(lines)
}

/// Cuts the line to 80 characters, without control characters.
pub fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(400)]);
    let mut shown: String = text.chars().take(80).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(80).is_some() {
        shown.push('…');
    }
    shown
}
