//! Charts, styles, formulas and other sheets stay byte for byte.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use rust_xlsxwriter::{Chart, ChartType, Format, Formula, Workbook};
use zip::ZipArchive;

use super::*;
use crate::{FloorRow, LatencyNs, Report, Row, RowConfig};

struct SampleWorkbook {
    directory: tempfile::TempDir,
    path: PathBuf,
}

fn sample(with_formulas: bool) -> SampleWorkbook {
    let mut workbook = Workbook::new();
    let styled = Format::new().set_bold().set_num_format("0.000");
    let sheet = workbook.add_worksheet().set_name("Figures & more").unwrap();
    for row in 0..4 {
        sheet.write(row, 0, format!("run {row}")).unwrap();
        sheet.write_with_format(row, 2, f64::from(row) * 1.5, &styled).unwrap();
    }
    if with_formulas {
        sheet.write(6, 2, Formula::new("=SUM(C1:C4)").set_result("9")).unwrap();
    }
    let mut chart = Chart::new(ChartType::Line);
    chart.add_series().set_values(("Figures & more", 0, 2, 3, 2));
    sheet.insert_chart(8, 0, &chart).unwrap();
    workbook.add_worksheet().set_name("Other").unwrap().write(0, 0, "untouched").unwrap();
    workbook.define_name("Best", "='Figures & more'!$C$1").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("results.xlsx");
    workbook.save(&path).unwrap();
    SampleWorkbook { directory, path }
}

/// Name → stored (compressed) bytes and text.
fn parts(path: &Path) -> BTreeMap<String, (Vec<u8>, Vec<u8>)> {
    let bytes = std::fs::read(path).unwrap();
    let mut archive = ZipArchive::new(Cursor::new(bytes)).unwrap();
    (0..archive.len())
        .map(|index| {
            let mut stored = Vec::new();
            archive.by_index_raw(index).unwrap().read_to_end(&mut stored).unwrap();
            let mut part = archive.by_index(index).unwrap();
            let mut text = Vec::new();
            part.read_to_end(&mut text).unwrap();
            (part.name().unwrap().into_owned(), (stored, text))
        })
        .collect()
}

fn changed(before: &BTreeMap<String, (Vec<u8>, Vec<u8>)>, after: &BTreeMap<String, (Vec<u8>, Vec<u8>)>) -> Vec<String> {
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    before.iter().filter(|(name, part)| after[*name] != **part).map(|(name, _)| name.clone()).collect()
}

fn sheet_text(path: &Path, name: &str) -> String {
    String::from_utf8(parts(path)[name].1.clone()).unwrap()
}

fn cell(text: &str) -> CellAddress {
    text.parse().unwrap()
}

#[test]
fn only_the_target_cell_changes() {
    let sample = sample(true);
    let before = parts(&sample.path);
    assert!(before.keys().any(|name| name.contains("charts/chart1.xml")));
    write_cell(&sample.path, cell("2-3"), 1.234).unwrap();
    let after = parts(&sample.path);
    assert_eq!(changed(&before, &after), ["xl/worksheets/sheet1.xml"]);

    let text = |parts: &BTreeMap<String, (Vec<u8>, Vec<u8>)>| {
        String::from_utf8(parts["xl/worksheets/sheet1.xml"].1.clone()).unwrap()
    };
    let (before, after) = (text(&before), text(&after));
    assert!(before.contains(r#"<c r="C2" s="1"><v>1.5</v></c>"#), "{before}");
    assert_eq!(after, before.replace(r#"<c r="C2" s="1"><v>1.5</v></c>"#, r#"<c r="C2" s="1"><v>1.234</v></c>"#));
}

#[test]
fn text_cell_becomes_a_number() {
    let sample = sample(false);
    write_cell(&sample.path, cell("1-1"), 42.0).unwrap();
    write_cell(&sample.path, cell("100-30"), -0.5).unwrap();
    write_cell(&sample.path, cell("2-2"), 1e300).unwrap();
    let text = sheet_text(&sample.path, "xl/worksheets/sheet1.xml");
    assert!(text.contains(r#"<c r="A1"><v>42</v></c>"#), "{text}");
    assert!(text.contains(r#"<row r="100"><c r="AD100"><v>-0.5</v></c></row></sheetData>"#), "{text}");
    assert!(text.contains(r#"ref="A1:AD100""#), "{text}");
    assert!(text.contains(r#"</c><c r="B2"><v>1"#), "{text}");
}

#[test]
fn replaced_formula_leaves_the_chain() {
    let sample = sample(true);
    add_calculation_chain(&sample.path);
    let before = parts(&sample.path);
    write_cell(&sample.path, cell("7-3"), 5.0).unwrap();
    let after = parts(&sample.path);
    assert!(before.contains_key("xl/calcChain.xml") && !after.contains_key("xl/calcChain.xml"));
    let text = |name: &str| String::from_utf8(after[name].1.clone()).unwrap();
    assert!(!text("[Content_Types].xml").contains("calcChain"));
    assert!(!text("xl/_rels/workbook.xml.rels").contains("calcChain"));
    assert!(text("xl/worksheets/sheet1.xml").contains(r#"<c r="C7"><v>5</v></c>"#));
    let untouched = before.iter().filter(|(name, part)| after.get(*name) == Some(part)).count();
    assert_eq!(untouched, before.len() - 4);
}

/// The library that builds the sample writes none.
fn add_calculation_chain(path: &Path) {
    use std::io::Write;
    let entry = r#"<Override PartName="/xl/calcChain.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.calcChain+xml"/></Types>"#;
    let relationship = r#"<Relationship Id="rId99" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/calcChain" Target="calcChain.xml"/></Relationships>"#;
    let old = parts(path);
    let mut writer = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    let options = zip::write::SimpleFileOptions::default();
    for (name, (_, text)) in old {
        let text = String::from_utf8(text).unwrap();
        let text = match name.as_str() {
            "[Content_Types].xml" => text.replace("</Types>", entry),
            "xl/_rels/workbook.xml.rels" => text.replace("</Relationships>", relationship),
            _ => text,
        };
        writer.start_file(name, options).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.start_file("xl/calcChain.xml", options).unwrap();
    writer.write_all(br#"<calcChain xmlns="x"><c r="C7" i="1"/></calcChain>"#).unwrap();
    writer.finish().unwrap();
}

#[test]
fn unwritable_workbook_is_unchanged() {
    let sample = sample(false);
    let refuse = |path: &Path, expected: &str| {
        for result in [write_cell(path, cell("1-1"), 1.0), check_cell(path, cell("1-1"))] {
            let message = result.unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
            assert!(message.contains(path.file_name().unwrap().to_str().unwrap()), "{message}");
        }
    };
    let before = std::fs::read(&sample.path).unwrap();

    let missing = sample.directory.path().join("missing.xlsx");
    refuse(&missing, "is not there");
    refuse(sample.directory.path(), "is not a file");

    let text = sample.directory.path().join("text.xlsx");
    std::fs::write(&text, "no workbook").unwrap();
    refuse(&text, "is not an Excel workbook");
    assert_eq!(std::fs::read(&text).unwrap(), b"no workbook");

    let truncated = sample.directory.path().join("truncated.xlsx");
    std::fs::write(&truncated, &before[..before.len() / 2]).unwrap();
    refuse(&truncated, "is not an Excel workbook");

    let other = sample.directory.path().join("other.zip");
    zip::ZipWriter::new(std::fs::File::create(&other).unwrap()).finish().unwrap();
    refuse(&other, "is not a complete Excel workbook");

    let open = sample.directory.path().join("~$results.xlsx");
    std::fs::write(&open, "").unwrap();
    refuse(&sample.path, "is open in another program");
    std::fs::remove_file(&open).unwrap();

    let holder = std::fs::File::open(&sample.path).unwrap();
    rustix::fs::flock(&holder, rustix::fs::FlockOperation::LockExclusive).unwrap();
    refuse(&sample.path, "is locked by another program");
    drop(holder);

    std::fs::set_permissions(&sample.path, std::fs::Permissions::from_mode(0o444)).unwrap();
    refuse(&sample.path, "is read-only");
    std::fs::set_permissions(&sample.path, std::fs::Permissions::from_mode(0o640)).unwrap();

    let message = write_cell(&sample.path, cell("1-1"), f64::NAN).unwrap_err().to_string();
    assert!(message.contains("NaN"), "{message}");
    assert_eq!(std::fs::read(&sample.path).unwrap(), before);
}

#[test]
fn flipped_byte_never_panics() {
    let sample = sample(true);
    let good = std::fs::read(&sample.path).unwrap();
    let copy = sample.directory.path().join("flipped.xlsx");
    for index in (0..good.len()).step_by(37) {
        let mut bytes = good.clone();
        bytes[index] ^= 0x55;
        std::fs::write(&copy, &bytes).unwrap();
        drop(check_cell(&copy, cell("3-3")));
    }
}

#[test]
fn permissions_and_links_remain() {
    let sample = sample(false);
    std::fs::set_permissions(&sample.path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let link = sample.directory.path().join("link.xlsx");
    std::os::unix::fs::symlink("results.xlsx", &link).unwrap();
    check_cell(&link, cell("1-4")).unwrap();
    write_cell(&link, cell("1-4"), 2.0).unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&sample.path).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(sheet_text(&sample.path, "xl/worksheets/sheet1.xml").contains("<c r=\"D1\"><v>2</v></c>"));
    assert_eq!(std::fs::read_dir(sample.directory.path()).unwrap().count(), 2);
}

fn report() -> Report {
    let config =
        RowConfig { encoding: Some("sbe.serial".into()), tier: Some("journal".into()), ..RowConfig::default() };
    let latency = LatencyNs { p50: 1_500, ..LatencyNs::default() };
    Report {
        rows: vec![Row { config, latency_ns: Some(latency), throughput_per_s: Some(2e6), ..Row::default() }],
        floor: vec![FloorRow { name: "shm_ping_pong".into(), p50_ns: Some(580), ..FloorRow::default() }],
        ..Report::new("canonical")
    }
}

#[test]
fn new_workbook_can_be_edited() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new.xlsx");
    create(&path, &report()).unwrap();
    let text = sheet_text(&path, "xl/worksheets/sheet1.xml");
    assert!(text.contains("<v>1.5</v>") && text.contains("<v>2000000</v>"), "{text}");
    assert!(sheet_text(&path, "xl/sharedStrings.xml").contains("shm_ping_pong"));
    assert!(parts(&path).contains_key("xl/charts/chart1.xml"));
    let message = create(&path, &report()).unwrap_err().to_string();
    assert!(message.contains("already there"), "{message}");
    write_cell(&path, cell("2-8"), 7.25).unwrap();
    assert!(sheet_text(&path, "xl/worksheets/sheet1.xml").contains("<v>7.25</v>"));
    let message = create(&directory.path().join("no/new.xlsx"), &report()).unwrap_err().to_string();
    assert!(message.contains("is not there"), "{message}");
}

#[test]
fn another_library_reads_workbooks() {
    use calamine::{Data, Reader, Xlsx, open_workbook};
    let sample = sample(true);
    write_cell(&sample.path, cell("5-4"), 3.25).unwrap();
    let mut book: Xlsx<_> = open_workbook(&sample.path).unwrap();
    let names = book.sheet_names();
    assert_eq!(book.worksheet_range(&names[0]).unwrap().get_value((4, 3)), Some(&Data::Float(3.25)));
    let untouched = book.worksheet_range(&names[1]).unwrap().get_value((0, 0)).cloned();
    assert_eq!(untouched, Some(Data::String("untouched".to_owned())));

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new.xlsx");
    create(&path, &report()).unwrap();
    let mut book: Xlsx<_> = open_workbook(&path).unwrap();
    let first = book.sheet_names()[0].clone();
    let range = book.worksheet_range(&first).unwrap();
    let has = |wanted: f64| range.used_cells().any(|(_, _, value)| *value == Data::Float(wanted));
    assert!(has(1.5) && has(2_000_000.0), "{range:?}");
}

#[test]
fn another_program_reads_the_cell() {
    let sample = sample(true);
    write_cell(&sample.path, cell("5-4"), 3.25).unwrap();
    let script = "import sys\ntry:\n import openpyxl\nexcept ImportError:\n sys.exit(77)\n\
        book = openpyxl.load_workbook(sys.argv[1])\nassert book.worksheets[0]['D5'].value == 3.25\n\
        assert book.worksheets[1]['A1'].value == 'untouched'\n";
    match Command::new("python3").arg("-c").arg(script).arg(&sample.path).output() {
        Ok(output) if output.status.success() => (),
        Ok(output) if output.status.code() == Some(77) => println!("skipped: openpyxl is not installed"),
        Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => println!("skipped: python3 is not installed"),
    }
}

#[test]
fn cell_addresses_are_parsed() {
    assert_eq!(cell("5-3").excel_name(), "C5");
    assert_eq!(cell("1048576-16384").excel_name(), "XFD1048576");
    assert_eq!(
        [27, 52, 53, 702, 703].map(|column| CellAddress::new(1, column).unwrap().excel_name()),
        ["AA1", "AZ1", "BA1", "ZZ1", "AAA1"]
    );
    for column in 1..=COLUMN_MAX {
        let address = CellAddress::new(9, column).unwrap();
        assert_eq!(CellAddress::from_excel_name(&address.excel_name()), Some(address));
    }
    for bad in ["", "-", "5", "5-", "-3", "0-1", "1-0", "1048577-1", "1-16385", "a-1", "+1-1", "1-1-1", "C5", " 1-1"] {
        assert!(bad.parse::<CellAddress>().is_err(), "{bad}");
    }
    assert_eq!(cell("5-3").to_string(), "5-3");
    assert_eq!(CellAddress::from_excel_name("$C$5"), Some(cell("5-3")));
    assert_eq!(["5", "C", "ABCD1", "C5x", "é1", ""].map(CellAddress::from_excel_name), [None; 6]);
}
