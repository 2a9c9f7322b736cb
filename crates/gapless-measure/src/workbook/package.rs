//! The parts of a workbook that one cell's change touches: which sheet is the first, the list of formula
//! cells, the request to calculate again. (ECMA-376 part 1, sections 12 and 18; part 2 for relationships.)

use super::xml::{attribute, damaged, position, prefix_of};
use std::io::{Cursor, Read};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use zip::ZipArchive;

use super::sheet;
use super::xml::{Splice, apply};
use crate::workbook::CellAddress;

/// `None` leaves the part out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Replacement {
    pub(super) name: String,
    pub(super) text: Option<String>,
}

pub(super) struct Package<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
}

/// A sentence that follows the workbook's name.
type ReasonedResult<T> = std::result::Result<T, String>;

/// A larger unpacked part is refused.
const PART_BYTES_MAX: u64 = 1 << 29;

const CONTENT_TYPES: &str = "[Content_Types].xml";

impl<'a> Package<'a> {
    pub(super) fn new(archive: ZipArchive<Cursor<&'a [u8]>>) -> Self {
        Self { archive }
    }

    pub(super) fn set_cell(&mut self, cell: CellAddress, value: f64) -> ReasonedResult<Vec<Replacement>> {
        let root = self.relationships("")?;
        let workbook_name = root
            .iter()
            .find(|relationship| relationship.kind.ends_with("/officeDocument"))
            .map(|relationship| relationship.target.clone())
            .ok_or("is not an Excel workbook: it names no main document")?;
        let workbook = self.part(&workbook_name)?;
        let relationships = self.relationships(&workbook_name)?;
        let (sheet_id, sheet_name) = first_sheet(&workbook, &relationships)?;

        let sheet = self.part(&sheet_name)?;
        let edit = sheet::set_cell(&sheet, cell, value)?;
        let mut replacements = vec![Replacement { name: sheet_name.clone(), text: Some(edit.text) }];
        if edit.formula_removed {
            self.forget_formula(&workbook_name, &relationships, &sheet_id, cell, &mut replacements)?;
        }
        if self.has_formulas()?
            && let Some(text) = calculate_on_load(&workbook)?
        {
            replacements.push(Replacement { name: workbook_name, text: Some(text) });
        }
        Ok(replacements)
    }

    /// Excel treats a calculation chain that names a cell without a formula as damage.
    fn forget_formula(
        &mut self,
        workbook_name: &str,
        relationships: &[Relationship],
        sheet_id: &str,
        cell: CellAddress,
        replacements: &mut Vec<Replacement>,
    ) -> ReasonedResult<()> {
        let Some(chain) = relationships.iter().find(|relationship| relationship.kind.ends_with("/calcChain")) else {
            return Ok(());
        };
        let text = self.part(&chain.target)?;
        let (text, is_empty) = without_chain_entry(&text, sheet_id, &cell.excel_name())?;
        if !is_empty {
            replacements.push(Replacement { name: chain.target.clone(), text: Some(text) });
            return Ok(());
        }
        // An empty chain is not allowed: the part goes, with its references.
        replacements.push(Replacement { name: chain.target.clone(), text: None });
        let types = self.part(CONTENT_TYPES)?;
        let part_name = format!("/{}", chain.target);
        let types =
            without_element(&types, "Override", |tag| attribute(tag, "PartName").as_deref() == Some(&part_name))?;
        replacements.push(Replacement { name: CONTENT_TYPES.into(), text: Some(types) });
        let name = relationships_of(workbook_name);
        let text = self.part(&name)?;
        let text = without_element(&text, "Relationship", |tag| attribute(tag, "Id").as_deref() == Some(&chain.id))?;
        replacements.push(Replacement { name, text: Some(text) });
        Ok(())
    }

    fn has_formulas(&mut self) -> ReasonedResult<bool> {
        let names = self.archive.file_names().flatten().map(|name| name.into_owned());
        let sheets: Vec<String> = names.filter(|name| name.contains("worksheets/") && name.ends_with(".xml")).collect();
        for name in &sheets {
            let text = self.part(name)?;
            let mut reader = Reader::from_str(&text);
            loop {
                match reader.read_event().map_err(|error| format!("{name} is damaged: {error}"))? {
                    Event::Start(tag) | Event::Empty(tag) if tag.local_name().as_ref() == "f" => return Ok(true),
                    Event::Eof => break,
                    _ => (),
                }
            }
        }
        Ok(false)
    }

    fn part(&mut self, name: &str) -> ReasonedResult<String> {
        let part = self
            .archive
            .by_name(name)
            .map_err(|error| format!("is not a complete Excel workbook: its part {name} cannot be read: {error}"))?;
        let mut bytes = Vec::new();
        let length = part
            .take(PART_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| format!("its part {name} is damaged: {error}"))?;
        if length as u64 > PART_BYTES_MAX {
            return Err(format!("its part {name} unpacks to more than {PART_BYTES_MAX} bytes"));
        }
        String::from_utf8(bytes).map_err(|_| format!("its part {name} is not in UTF-8, which is all that is supported"))
    }

    /// `""` is the package itself; targets are names in the archive.
    fn relationships(&mut self, of: &str) -> ReasonedResult<Vec<Relationship>> {
        let text = self.part(&relationships_of(of))?;
        let folder = of.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut relationships = Vec::new();
        for_each_tag(&text, |_, tag| {
            if tag.local_name().as_ref() == "Relationship"
                && let (Some(id), Some(kind), Some(target)) =
                    (attribute(tag, "Id"), attribute(tag, "Type"), attribute(tag, "Target"))
            {
                relationships.push(Relationship { id, kind, target: resolve(folder, &target) });
            }
        })?;
        Ok(relationships)
    }
}

#[derive(Debug)]
struct Relationship {
    id: String,
    kind: String,
    target: String,
}

/// `xl/workbook.xml` → `xl/_rels/workbook.xml.rels`.
fn relationships_of(part: &str) -> String {
    let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
    if folder.is_empty() { format!("_rels/{name}.rels") } else { format!("{folder}/_rels/{name}.rels") }
}

/// Resolves from the root if `target` begins with `/`.
fn resolve(folder: &str, target: &str) -> String {
    let path = match target.strip_prefix('/') {
        Some(absolute) => absolute.to_owned(),
        None => format!("{folder}/{target}"),
    };
    let mut names = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => (),
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    names.join("/")
}

/// Identifier and part of the first sheet with cells; skips chart sheets.
fn first_sheet(workbook: &str, relationships: &[Relationship]) -> ReasonedResult<(String, String)> {
    let mut first = None;
    for_each_tag(workbook, |_, tag| {
        if first.is_some() || tag.local_name().as_ref() != "sheet" {
            return;
        }
        // The attribute r:id; its prefix may vary.
        let relationship_id = tag
            .attributes()
            .flatten()
            .find(|attribute| attribute.key.local_name().as_ref() == "id")
            .map(|attribute| attribute.value.into_owned());
        let target = relationships.iter().find(|relationship| {
            Some(&relationship.id) == relationship_id.as_ref() && relationship.kind.ends_with("/worksheet")
        });
        if let Some(target) = target {
            first = Some((attribute(tag, "sheetId").unwrap_or_default(), target.target.clone()));
        }
    })?;
    first.ok_or_else(|| "has no sheet with cells".to_owned())
}

/// Requests a full calculation on opening; `None` if that is there already.
fn calculate_on_load(workbook: &str) -> ReasonedResult<Option<String>> {
    const REQUEST: &str = " fullCalcOnLoad=\"1\"";
    let mut splice = None;
    let mut end_of_element_before = None;
    let mut prefix = String::new();
    // In the schema calcPr follows these.
    const BEFORE: [&str; 6] =
        ["sheets", "functionGroups", "externalReferences", "definedNames", "bookViews", "workbookPr"];
    let mut reader = Reader::from_str(workbook);
    loop {
        let begin = position(&reader);
        let event = reader.read_event().map_err(damaged)?;
        let end = position(&reader);
        match &event {
            Event::Start(tag) | Event::Empty(tag) if tag.local_name().as_ref() == "calcPr" => {
                splice = Some(match attribute(tag, "fullCalcOnLoad").as_deref() {
                    Some("1" | "true") => None,
                    Some(_) => Some(Splice::new(
                        begin,
                        end,
                        without_attribute(&workbook[begin..end], "fullCalcOnLoad", REQUEST),
                    )),
                    None => {
                        let at = end - if matches!(event, Event::Empty(_)) { 2 } else { 1 };
                        let blank_before = workbook[..at].trim_end().len();
                        Some(Splice::new(blank_before, blank_before, REQUEST.to_owned()))
                    }
                });
            }
            Event::End(tag) if BEFORE.contains(&tag.local_name().as_ref()) => {
                prefix = prefix_of(tag.name().as_ref()).to_owned();
                end_of_element_before = Some(end);
            }
            Event::Empty(tag) if BEFORE.contains(&tag.local_name().as_ref()) => end_of_element_before = Some(end),
            Event::Eof => break,
            _ => (),
        }
    }
    let splice = match splice {
        Some(None) => return Ok(None),
        Some(Some(splice)) => splice,
        None => {
            let at = end_of_element_before.ok_or("its workbook part has no sheets")?;
            Splice::new(at, at, format!("<{prefix}calcPr{REQUEST}/>"))
        }
    };
    apply(workbook, vec![splice]).map(Some)
}

fn without_attribute(tag: &str, name: &str, replacement: &str) -> String {
    let Some(at) = tag.find(&format!(" {name}=")) else { return tag.to_owned() };
    let value_at = at + name.len() + 2;
    let Some(quote) = tag[value_at..].chars().next() else { return tag.to_owned() };
    let end = tag[value_at + 1..].find(quote).map_or(tag.len(), |length| value_at + 1 + length + 1);
    format!("{}{replacement}{}", &tag[..at], &tag[end..])
}

/// Returns whether the chain is empty now. An entry without a sheet has that of the one before.
fn without_chain_entry(chain: &str, sheet_id: &str, cell: &str) -> ReasonedResult<(String, bool)> {
    let mut splices = Vec::new();
    let mut current_sheet = String::new();
    let mut kept = 0;
    let mut orphaned = false;
    let mut reader = Reader::from_str(chain);
    loop {
        let begin = position(&reader);
        let event = reader.read_event().map_err(damaged)?;
        let end = position(&reader);
        match event {
            Event::Empty(tag) if tag.local_name().as_ref() == "c" => {
                let own_sheet = attribute(&tag, "i");
                let had_own_sheet = own_sheet.is_some();
                if let Some(own_sheet) = own_sheet {
                    current_sheet = own_sheet;
                    orphaned = false;
                }
                if current_sheet == sheet_id && attribute(&tag, "r").as_deref() == Some(cell) {
                    splices.push(Splice::new(begin, end, String::new()));
                    // Later cells took their sheet from it.
                    orphaned |= had_own_sheet;
                } else {
                    kept += 1;
                    if orphaned {
                        splices.push(Splice::new(end - 2, end - 2, format!(" i=\"{current_sheet}\"")));
                        orphaned = false;
                    }
                }
            }
            Event::Eof => break,
            _ => (),
        }
    }
    Ok((apply(chain, splices)?, kept == 0))
}

fn without_element(text: &str, name: &str, is_it: impl Fn(&BytesStart<'_>) -> bool) -> ReasonedResult<String> {
    let mut splices = Vec::new();
    for_each_tag(text, |span, tag| {
        if tag.local_name().as_ref() == name && is_it(tag) {
            splices.push(Splice::new(span.0, span.1, String::new()));
        }
    })?;
    apply(text, splices)
}

fn for_each_tag(text: &str, mut visit: impl FnMut((usize, usize), &BytesStart<'_>)) -> ReasonedResult<()> {
    let mut reader = Reader::from_str(text);
    loop {
        let begin = position(&reader);
        match reader.read_event().map_err(damaged)? {
            Event::Start(tag) | Event::Empty(tag) => visit((begin, position(&reader)), &tag),
            Event::Eof => return Ok(()),
            _ => (),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_relative_or_absolute() {
        assert_eq!(resolve("xl", "worksheets/sheet1.xml"), "xl/worksheets/sheet1.xml");
        assert_eq!(resolve("xl", "/xl/worksheets/sheet1.xml"), "xl/worksheets/sheet1.xml");
        assert_eq!(resolve("xl/worksheets", "../a.xml"), "xl/a.xml");
        assert_eq!(relationships_of("xl/workbook.xml"), "xl/_rels/workbook.xml.rels");
        assert_eq!(relationships_of(""), "_rels/.rels");
    }

    #[test]
    fn removed_chain_entry_keeps_followers() {
        let chain = r#"<calcChain><c r="A1" i="1"/><c r="B1"/><c r="B1" i="2"/></calcChain>"#;
        let (text, is_empty) = without_chain_entry(chain, "1", "A1").unwrap();
        assert_eq!(text, r#"<calcChain><c r="B1" i="1"/><c r="B1" i="2"/></calcChain>"#);
        assert!(!is_empty);
        let (text, _) = without_chain_entry(chain, "1", "B1").unwrap();
        assert_eq!(text, r#"<calcChain><c r="A1" i="1"/><c r="B1" i="2"/></calcChain>"#);
        assert!(without_chain_entry(r#"<calcChain><c r="A1" i="1"/></calcChain>"#, "1", "A1").unwrap().1);
    }

    #[test]
    fn calculation_request_is_added_once() {
        let with = |calc: &str| format!("<workbook><sheets><sheet/></sheets>{calc}<x/></workbook>");
        let expect = |calc: &str, expected: &str| {
            assert_eq!(calculate_on_load(&with(calc)).unwrap(), Some(with(expected)));
        };
        expect("", r#"<calcPr fullCalcOnLoad="1"/>"#);
        expect(r#"<calcPr calcId="1"/>"#, r#"<calcPr calcId="1" fullCalcOnLoad="1"/>"#);
        expect(r#"<calcPr fullCalcOnLoad="0" calcId="1"/>"#, r#"<calcPr fullCalcOnLoad="1" calcId="1"/>"#);
        assert_eq!(calculate_on_load(&with(r#"<calcPr fullCalcOnLoad="1"/>"#)).unwrap(), None);
    }
}
