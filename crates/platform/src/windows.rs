//! Windows.
#![expect(unsafe_code, reason = "the standard library has nothing for these calls")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::ffi::OsStrExt as _;
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::AsRawHandle as _;
use std::path::{Component, Path};
use std::ptr;

use windows_sys::Win32::Foundation::{
    ERROR_CANT_RESOLVE_FILENAME, ERROR_INVALID_FUNCTION, ERROR_NOT_SUPPORTED, ERROR_SUCCESS, LocalFree,
};
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::{
    DACL_SECURITY_INFORMATION, PROTECTED_DACL_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR, SetFileSecurityW,
};
use windows_sys::Win32::Storage::FileSystem::{
    BY_HANDLE_FILE_INFORMATION, FILE_BASIC_INFO, FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_OPEN_REPARSE_POINT,
    FileBasicInfo, GetDiskFreeSpaceExW, GetFileInformationByHandle, GetFileInformationByHandleEx,
    GetFinalPathNameByHandleW,
};
use windows_sys::Win32::System::Registry::{HKEY_LOCAL_MACHINE, RRF_RT_REG_SZ, RegGetValueW};

use crate::facts::{Facts, PathKind};

pub const LINK: i32 = ERROR_CANT_RESOLVE_FILENAME.cast_signed();
pub const SPECIAL: Option<i32> = None;

/// Errors that say what is used up: too many open files, a full disk.
pub const SHORTAGES: [(i32, &str); 2] = [
    (4, "this process has too many files open; close files or sessions that are no longer needed"),
    (112, "no space is left on the disk; free some"),
];

/// Opens something that is always there.
pub fn open_any() -> io::Result<File> {
    File::open("NUL")
}

pub fn refusal(_path: &Path, _is_written: bool) -> Option<io::Error> {
    None
}

/// 100 ns from 1601, where Windows counts from, to 1970.
const EPOCH: i64 = 116_444_736_000_000_000;

pub fn facts_at(path: &Path) -> io::Result<Facts> {
    facts_of(&look(path, FILE_FLAG_OPEN_REPARSE_POINT)?)
}

pub fn facts_of(file: &File) -> io::Result<Facts> {
    // The standard library knows which reparse points are links; a file that is kept in a cloud is none.
    let kind = match file.metadata()?.file_type() {
        kind if kind.is_symlink() => PathKind::Link,
        kind if kind.is_dir() => PathKind::Directory,
        _ => PathKind::File,
    };
    let mut found = BY_HANDLE_FILE_INFORMATION::default();
    // SAFETY: the handle is open as long as `file` is, and `found` is what the call fills.
    checked(unsafe { GetFileInformationByHandle(file.as_raw_handle(), &raw mut found) })?;
    let mut basic = FILE_BASIC_INFO::default();
    let size = size_of::<FILE_BASIC_INFO>() as u32;
    // SAFETY: as above; the size is that of `basic`, which belongs to this class of information.
    checked(unsafe {
        GetFileInformationByHandleEx(file.as_raw_handle(), FileBasicInfo, (&raw mut basic).cast(), size)
    })?;
    Ok(Facts {
        kind,
        device: found.dwVolumeSerialNumber.into(),
        number: whole(found.nFileIndexHigh, found.nFileIndexLow),
        size: whole(found.nFileSizeHigh, found.nFileSizeLow),
        modified: time(basic.LastWriteTime),
        changed: time(basic.ChangeTime),
    })
}

pub fn identity(path: &Path) -> Option<(u64, u64)> {
    look(path, 0).and_then(|file| facts_of(&file)).ok().map(|facts| facts.identity())
}

pub fn device(_: &Path) -> Option<u64> {
    None
}

pub fn open_without_links(path: &Path) -> io::Result<File> {
    let names_a_stream = |part: Component<'_>| match part {
        Component::Normal(name) => name.as_encoded_bytes().contains(&b':'),
        _ => false,
    };
    if path.components().any(names_a_stream) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "its name has a colon"));
    }
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT)
        .open(path)?;
    if file.metadata()?.file_type().is_symlink() || !is_same(&final_path(&file)?, path) {
        return Err(io::Error::from_raw_os_error(LINK));
    }
    Ok(file)
}

pub fn private_file(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.open(path)?;
    restrict(path, "")?;
    Ok(file)
}

pub fn private_directory(path: &Path) -> io::Result<()> {
    std::fs::create_dir_all(path)?;
    restrict(path, "OICI")
}

pub fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

pub fn free_space(folder: &Path) -> Option<u64> {
    let folder: Vec<u16> = folder.as_os_str().encode_wide().chain([0]).collect();
    let mut free = 0_u64;
    // SAFETY: `folder` ends with a NUL, and `free` is what the call fills; the others may be null.
    let outcome =
        unsafe { GetDiskFreeSpaceExW(folder.as_ptr(), &raw mut free, ptr::null_mut(), ptr::null_mut()) };
    (outcome != 0).then_some(free)
}

pub fn machine_guid() -> Option<String> {
    let (key, name) = (wide(r"SOFTWARE\Microsoft\Cryptography"), wide("MachineGuid"));
    let mut text = [0_u16; 64];
    let mut size = size_of_val(&text) as u32;
    // SAFETY: both names end with a NUL, and `size` is the size of `text` in bytes.
    let outcome = unsafe {
        RegGetValueW(
            HKEY_LOCAL_MACHINE,
            key.as_ptr(),
            name.as_ptr(),
            RRF_RT_REG_SZ,
            ptr::null_mut(),
            text.as_mut_ptr().cast(),
            &raw mut size,
        )
    };
    let length = text.iter().position(|unit| *unit == 0)?;
    (outcome == ERROR_SUCCESS).then(|| String::from_utf16_lossy(&text[..length]))
}

/// Gives all access to the owner, the system and the administrators, who can take it anyway, and none to anybody else.
/// A file system without access lists has nothing to restrict.
fn restrict(path: &Path, inherit: &str) -> io::Result<()> {
    let access = |who: &str| format!("(A;{inherit};FA;;;{who})");
    let list = wide(&format!("D:P{}{}{}", access("OW"), access("SY"), access("BA")));
    let name: Vec<u16> = path.as_os_str().encode_wide().chain([0]).collect();
    let mut descriptor: PSECURITY_DESCRIPTOR = ptr::null_mut();
    // SAFETY: `list` ends with a NUL; what the call allocates is freed below.
    checked(unsafe {
        ConvertStringSecurityDescriptorToSecurityDescriptorW(
            list.as_ptr(),
            SDDL_REVISION_1,
            &raw mut descriptor,
            ptr::null_mut(),
        )
    })?;
    let what = DACL_SECURITY_INFORMATION | PROTECTED_DACL_SECURITY_INFORMATION;
    // SAFETY: `name` ends with a NUL, and the descriptor is what the call above made.
    let outcome = checked(unsafe { SetFileSecurityW(name.as_ptr(), what, descriptor) });
    // SAFETY: it is not used after this.
    unsafe { LocalFree(descriptor) };
    match outcome {
        Err(error)
            if [ERROR_NOT_SUPPORTED, ERROR_INVALID_FUNCTION]
                .iter()
                .any(|code| error.raw_os_error() == Some(code.cast_signed())) =>
        {
            Ok(())
        }
        outcome => outcome,
    }
}

/// Opens anything, only to look at it.
fn look(path: &Path, flags: u32) -> io::Result<File> {
    OpenOptions::new().access_mode(0).custom_flags(FILE_FLAG_BACKUP_SEMANTICS | flags).open(path)
}

/// The path of an open file, without links, as [`std::fs::canonicalize`] gives it.
fn final_path(file: &File) -> io::Result<Vec<u16>> {
    let mut path = vec![0_u16; 512];
    loop {
        let size = path.len() as u32;
        // SAFETY: the handle is open, and `size` is the length of `path` in units.
        let length = unsafe { GetFinalPathNameByHandleW(file.as_raw_handle(), path.as_mut_ptr(), size, 0) };
        match length {
            0 => return Err(last_error()),
            // Without the NUL where it fits, and with it where it does not.
            length if length < size => {
                path.truncate(length as usize);
                return Ok(path);
            }
            length => path.resize(length as usize, 0),
        }
    }
}

/// True if two paths differ at most in the case of letters: a file that did not exist yet was named as the caller wrote it.
fn is_same(found: &[u16], path: &Path) -> bool {
    let path: Vec<u16> = path.as_os_str().encode_wide().collect();
    found == path
        || String::from_utf16_lossy(found).to_lowercase() == String::from_utf16_lossy(&path).to_lowercase()
}

fn whole(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn time(ticks: i64) -> (i64, i64) {
    let since = ticks - EPOCH;
    (since.div_euclid(10_000_000), since.rem_euclid(10_000_000) * 100)
}

fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

fn checked(outcome: i32) -> io::Result<()> {
    if outcome == 0 { Err(last_error()) } else { Ok(()) }
}

fn last_error() -> io::Error {
    io::Error::last_os_error()
}
