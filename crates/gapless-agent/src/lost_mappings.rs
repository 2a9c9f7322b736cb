//! Names the file that was truncated while mapped, or whose device fails; the kernel sends only `SIGBUS`. The handler
//! calls only functions that are safe in a signal handler.

use std::cell::UnsafeCell;
use std::io;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit code of a program that has lost a file it uses, however found: `sysexits.h` for failed input or output.
pub const LOST_FILE: u8 = 74;

/// Installs the handler: if pages of a shared file mapping are gone, it ends this process with [`LOST_FILE`] and one
/// line on standard error with file and position. Repeated calls have no effect; other bus errors reach the previous
/// handler. A program with a handler for its own mappings installs that afterwards.
///
/// # Errors
/// An error of the operating system.
pub fn name_lost_mappings() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    INSTALLED
        .get_or_init(|| install().map_err(|error| error.raw_os_error().unwrap_or(0)))
        .map_err(io::Error::from_raw_os_error)
}

static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

fn install() -> io::Result<()> {
    // SAFETY: all bytes of the two structures may be zero; the signal exists; querying its handler changes nothing.
    let before = unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        check(libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut before))?;
        before
    };
    // Must be set before the handler that reads it is installed.
    let _first = BEFORE.set(before);
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = handle;
    // SAFETY: as above; the handler has the signature that SA_SIGINFO requires, and does only what a handler may.
    // ONSTACK: the thread's own stack may be exhausted, and the fault then belongs to another handler.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&raw mut action.sa_mask);
        check(libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()))
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

struct Scratch {
    read: [u8; 4096],
    line: [u8; 4096 + 128],
}

struct SharedScratch(UnsafeCell<Scratch>);

// SAFETY: used only by the thread that has set `TAKEN`.
unsafe impl Sync for SharedScratch {}

static SCRATCH: SharedScratch = SharedScratch(UnsafeCell::new(Scratch { read: [0; 4096], line: [0; 4096 + 128] }));
static TAKEN: AtomicBool = AtomicBool::new(false);

extern "C" fn handle(signal: libc::c_int, information: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid structure, and for this signal with these codes it has an address.
    let address = unsafe {
        let is_page_gone = (*information).si_code == libc::BUS_ADRERR;
        is_page_gone.then(|| (*information).si_addr() as u64)
    };
    if let Some(address) = address {
        // Acquire: pairs with the Release below. Another thread in here usually ends the process.
        while TAKEN.swap(true, Ordering::Acquire) {
            // SAFETY: a system call without memory.
            unsafe { libc::poll(ptr::null_mut(), 0, 1) };
        }
        // SAFETY: this thread holds TAKEN, and with it the memory.
        let is_named = print_mapping(unsafe { &mut *SCRATCH.0.get() }, address);
        if is_named {
            // SAFETY: ends the process at once, without running code that a signal handler may not run.
            unsafe { libc::_exit(LOST_FILE.into()) };
        }
        TAKEN.store(false, Ordering::Release);
    }
    call_previous_handler(signal, information, context);
}

fn call_previous_handler(signal: libc::c_int, information: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = BEFORE.get().map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    if before == libc::SIG_DFL || before == libc::SIG_IGN {
        // SAFETY: restores the default; after the return, the same instruction faults again and the kernel ends the
        // process.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    } else if BEFORE.get().is_some_and(|before| before.sa_flags & libc::SA_SIGINFO != 0) {
        // SAFETY: its installer has declared this signature.
        unsafe {
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                std::mem::transmute(before);
            handler(signal, information, context);
        }
    } else {
        // SAFETY: as above.
        unsafe {
            let handler: extern "C" fn(libc::c_int) = std::mem::transmute(before);
            handler(signal);
        }
    }
}

fn print_mapping(scratch: &mut Scratch, address: u64) -> bool {
    // SAFETY: the path ends with a zero.
    let maps = unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if maps < 0 {
        return false;
    }
    let mut length = 0;
    loop {
        // SAFETY: the buffer has that many bytes.
        let count = unsafe { libc::read(maps, scratch.read.as_mut_ptr().cast(), scratch.read.len()) };
        let Ok(count) = usize::try_from(count) else { return false };
        if count == 0 {
            return false;
        }
        for at in 0..count {
            let byte = scratch.read[at];
            if byte != b'\n' {
                if length < scratch.line.len() {
                    scratch.line[length] = byte;
                    length += 1;
                }
                continue;
            }
            if let Some(lost) = LostMapping::found(&scratch.line[..length], address) {
                lost.write();
                return true;
            }
            length = 0;
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct LostMapping<'a> {
    path: &'a [u8],
    position: u64,
}

impl<'a> LostMapping<'a> {
    /// File of a line of the maps, as `7f00-7f20 rw-s 00001000 08:02 4711
    fn found(line: &'a [u8], address: u64) -> Option<Self> {
        let (first, rest) = number(line)?;
        let (end, rest) = number(rest.strip_prefix(b"-")?)?;
        if !(first..end).contains(&address) {
            return None;
        }
        let rest = rest.strip_prefix(b" ")?;
        let is_shared = *rest.get(3)? == b's';
        let (offset, _) = number(rest.get(5..)?)?;
        let slash = rest.iter().position(|byte| *byte == b'/')?;
        is_shared.then(|| Self { path: &rest[slash..], position: offset + (address - first) })
    }

    fn write(&self) {
        let mut digits = [0; 20];
        let mut first = digits.len();
        let mut rest = self.position;
        while first == digits.len() || rest > 0 {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        write(b"gapless: ");
        write(self.path);
        write(b": nothing is left at byte ");
        write(&digits[first..]);
        write(b": the file was made shorter while this process had it mapped, or its device has failed; the process ends. ");
        write(b"Nothing may write to or cut the files of a running program\n");
    }
}

fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let count = text.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(text.len());
    let digit = |byte: &u8| u64::from(char::from(*byte).to_digit(16).unwrap_or(0));
    let value = text[..count].iter().fold(0u64, |value, byte| value << 4 | digit(byte));
    (1..=16).contains(&count).then_some((value, &text[count..]))
}

fn write(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        // SAFETY: the range is borrowed.
        let count = unsafe { libc::write(2, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(count) {
            Ok(count) if count > 0 => bytes = &bytes[count..],
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_line_yields_file_and_offset() {
        let line = b"7f0000001000-7f0000003000 rw-s 00010000 08:02 4711                       /a/the file (deleted)";
        let lost = LostMapping { path: b"/a/the file (deleted)", position: 0x1_1008 };
        assert_eq!(LostMapping::found(line, 0x7f00_0000_2008), Some(lost));
        assert_eq!(LostMapping::found(line, 0x7f00_0000_3000), None, "after the mapping");
        let private = b"7f0000001000-7f0000003000 rw-p 00010000 08:02 4711                       /a/program";
        assert_eq!(LostMapping::found(private, 0x7f00_0000_2008), None, "private mappings are ignored");
        assert_eq!(
            LostMapping::found(b"7f0000001000-7f0000003000 rw-s 00000000 00:01 9", 0x7f00_0000_2008),
            None,
            "no file"
        );
        for cut in 0..line.len() {
            let _no_panic = LostMapping::found(&line[..cut], 0x7f00_0000_2008);
        }
    }
}
