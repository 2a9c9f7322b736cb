//! Generates a file of transfers, about three in a hundred of them bad in every way known to the ledger. The output
//! depends only on the number of lines:
//!
//! ```text
//! cargo run --example transfers -- 10000 > crates/gapless/data/transfers.csv
//! ```

#![forbid(unsafe_code)]

use std::io::Write;

const ACCOUNTS: u64 = 100;

const NOTES: [&str; 8] =
    ["rent", "\"rent, and heating\"", "lunch", "\"the \"\"big\"\" bill\"", "", "book", "\"Zürich, ticket\"", "invoice"];

/// SplitMix64, by Sebastiano Vigna.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}

pub fn write(lines: u64, out: &mut impl Write) -> std::io::Result<()> {
    let mut dice = Dice(2026);
    writeln!(out, "id,from,to,amount,note")?;
    for line in 2..=lines {
        let id = line;
        if line < 2 + ACCOUNTS {
            let account = name(line - 2);
            let hundredths = 100_000 + dice.roll(900_000);
            writeln!(out, "{id},,{account},{}.{:02},opening balance", hundredths / 100, hundredths % 100)?;
        } else if dice.roll(100) < 3 {
            write_bad(line, &mut dice, out)?;
        } else {
            let (from, to) = pair(&mut dice);
            let hundredths = 1 + dice.roll(5000);
            let note = NOTES[dice.roll(NOTES.len() as u64) as usize];
            writeln!(out, "{id},{from},{to},{}.{:02},{note}", hundredths / 100, hundredths % 100)?;
        }
    }
    Ok(())
}

fn name(number: u64) -> String {
    format!("account-{number:03}")
}

fn pair(dice: &mut Dice) -> (String, String) {
    let from = dice.roll(ACCOUNTS);
    let to = (from + 1 + dice.roll(ACCOUNTS - 1)) % ACCOUNTS;
    (name(from), name(to))
}

fn write_bad(id: u64, dice: &mut Dice, out: &mut impl Write) -> std::io::Result<()> {
    let (from, to) = pair(dice);
    let amount = format!("{}.00", 1 + dice.roll(50));
    match dice.roll(28) {
        0 => writeln!(out, "{id},nobody-{id},{to},{amount},"),
        1 => writeln!(out, "{id},{from},nobody-{id},{amount},"),
        2 => writeln!(out, "{id},{from},{to},-{amount},give it back"),
        3 => writeln!(out, "{id},{from},{to},0.00,nothing"),
        4 => writeln!(out, "{id},{from},{to},99999999999999999999.00,beyond all numbers"),
        5 => writeln!(out, "{id},{from},{to},184467440737095516.16,one hundredth too many"),
        6 => writeln!(out, "{id},{from},{to},12.345,three decimals"),
        7 => writeln!(out, "{id},{from},{to},twelve,words"),
        8 => writeln!(out, "{id},{from},{to},1e3,"),
        9 => writeln!(out, "{id},{from},{to},,no amount"),
        10 => writeln!(out, "{id},{from},{to}"),
        11 => writeln!(out, "{id};{from};{to};{amount};semicolons"),
        12 => writeln!(out, "{id},{from},{to},{amount},rent, and heating"),
        13 => writeln!(out, "{id},{from},{to},{amount},\"never closed"),
        14 => writeln!(out, "{id},{from},{to},{amount},\"closed\" too early"),
        15 => writeln!(out, "{id},{from},{to},{amount},a \"quote\" inside"),
        16 => {
            out.write_all(format!("{id},{from},{to},{amount},Caf").as_bytes()).and_then(|()| out.write_all(b"\xe9\n"))
        }
        17 => out.write_all(b"\xff\xfe\x80\n"),
        18 => writeln!(out, "{},{from},{to},{amount},the id of a deposit", 2 + dice.roll(ACCOUNTS)),
        19 => writeln!(out, "{id},{from},{to},999999.99,more than there is"),
        20 => writeln!(out, "{id},{from},{from},{amount},to itself"),
        21 => writeln!(out, "{id},{from},,{amount},to nobody"),
        22 => writeln!(out, "-{id},{from},{to},{amount},"),
        23 => writeln!(out, "18446744073709551616,{from},{to},{amount},"),
        24 => writeln!(out, "{id},{from},an account with a long name,{amount},"),
        25 => writeln!(out, "{id},,{to},184467440737095516.15,a deposit that overflows the balance"),
        26 => writeln!(out),
        _ => writeln!(out, "{id},{from},{to},{amount},{}", "x".repeat(4096)),
    }
}

#[allow(dead_code, reason = "a test includes this file for `write`")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lines = std::env::args().nth(1).and_then(|argument| argument.parse().ok());
    let lines = lines.ok_or("how many lines? For instance: cargo run --example transfers -- 10000 > transfers.csv")?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    write(lines, &mut out)?;
    Ok(out.flush()?)
}
