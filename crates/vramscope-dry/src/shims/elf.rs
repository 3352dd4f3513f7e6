//! Reads shared libraries by their dynamic segment, a table at a time: `libtorch_cuda.so` can have
//! more than a gigabyte.

use super::error::Error;
use super::source::Source;
use object::LittleEndian;
use object::elf;
use object::pod::{Pod, from_bytes};
use object::read::elf::{Dyn as _, ProgramHeader as _};
use std::collections::BTreeMap;
use std::path::Path;

const LE: LittleEndian = LittleEndian;
type Header = elf::FileHeader64<LittleEndian>;
type Program = elf::ProgramHeader64<LittleEndian>;
type Section = elf::SectionHeader64<LittleEndian>;
type Dynamic = elf::Dyn64<LittleEndian>;
type Symbol = elf::Sym64<LittleEndian>;
type Verneed = elf::Verneed<LittleEndian>;
type Vernaux = elf::Vernaux<LittleEndian>;

/// The processor of a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Machine {
    X86_64,
    Aarch64,
}

impl Machine {
    pub(super) const EXPECTED: &'static str = "x86-64 or aarch64";

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86-64",
            Self::Aarch64 => "aarch64",
        }
    }

    fn of(code: u16) -> Option<Self> {
        match code {
            elf::EM_X86_64 => Some(Self::X86_64),
            elf::EM_AARCH64 => Some(Self::Aarch64),
            _ => None,
        }
    }
}

/// A shared library, open. Symbols and sections are read on request.
#[derive(Debug)]
pub(super) struct Library {
    source: Source,
    header: Header,
    loads: Vec<Program>,
    tags: BTreeMap<u32, u64>,
    pub(super) machine: Machine,
    pub(super) soname: Option<String>,
    pub(super) needed: Vec<String>,
}

/// The symbols of a library by name.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    pub(super) undefined: Vec<Undefined>,
    pub(super) defined: Vec<String>,
}

/// A symbol that another library must define.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Undefined {
    pub(super) name: String,
    pub(super) version: Option<Version>,
}

/// The version of an undefined symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    /// The soname of the library that defines it.
    pub(super) file: String,
    pub(super) name: String,
}

/// A section of a library.
#[derive(Debug)]
pub(super) struct SectionRange {
    pub(super) name: String,
    offset: u64,
    pub(super) size: u64,
}

impl Library {
    /// Opens a library. `None`: the file is no 64-bit little-endian ELF file.
    pub(super) fn open(path: &Path) -> Result<Option<Self>, Error> {
        let mut source = Source::open(path)?;
        let size = size_of::<Header>() as u64;
        if source.length < size {
            return Ok(None);
        }
        let head = source.range(0, size, "header")?;
        let header = *from_bytes::<Header>(&head).map_err(|()| source.broken("header"))?.0;
        let ident = header.e_ident;
        if ident.magic != elf::ELFMAG
            || ident.class != elf::ELFCLASS64
            || ident.data != elf::ELFDATA2LSB
        {
            return Ok(None);
        }
        let Some(machine) = Machine::of(header.e_machine.get(LE)) else {
            return Err(Error::Machine {
                file: path.to_owned(),
                found: format!("processor {} of the ELF format", header.e_machine.get(LE)),
                expected: Machine::EXPECTED,
            });
        };
        let count = u64::from(header.e_phnum.get(LE));
        let programs: Vec<Program> =
            source.table(header.e_phoff.get(LE), count, "program headers")?;
        let of_type = |kind| programs.iter().filter(move |p| p.p_type(LE) == kind);
        let loads = of_type(elf::PT_LOAD).copied().collect();
        let mut library = Self {
            header,
            loads,
            tags: BTreeMap::new(),
            machine,
            soname: None,
            needed: Vec::new(),
            source,
        };
        if let Some(dynamic) = of_type(elf::PT_DYNAMIC).next() {
            library.read_dynamic(dynamic)?;
        }
        Ok(Some(library))
    }

    fn read_dynamic(&mut self, segment: &Program) -> Result<(), Error> {
        let count = segment.p_filesz(LE) / size_of::<Dynamic>() as u64;
        let entries: Vec<Dynamic> =
            self.source.table(segment.p_offset(LE), count, "dynamic segment")?;
        let mut needed = Vec::new();
        for entry in &entries {
            match entry.tag32(LE) {
                Some(elf::DT_NULL) => break,
                Some(elf::DT_NEEDED) => needed.push(entry.d_val(LE)),
                Some(tag) => _ = self.tags.insert(tag, entry.d_val(LE)),
                None => {}
            }
        }
        if needed.is_empty() && !self.tags.contains_key(&elf::DT_SONAME) {
            return Ok(());
        }
        let strings = self.strings()?;
        self.needed =
            needed.into_iter().map(|at| self.string(strings, at)).collect::<Result<_, _>>()?;
        if let Some(at) = self.tags.get(&elf::DT_SONAME).copied() {
            self.soname = Some(self.string(strings, at)?);
        }
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.source.path
    }

    /// Whether the library needs a library of this name.
    pub(super) fn needs(&self, name: &str) -> bool {
        self.needed.iter().any(|needed| needed == name)
    }

    /// The symbols whose name `wanted` accepts.
    pub(super) fn symbols(&mut self, wanted: impl Fn(&str) -> bool) -> Result<Symbols, Error> {
        let Some(&table) = self.tags.get(&elf::DT_SYMTAB) else { return Ok(Symbols::default()) };
        let count = self.symbol_count()?;
        let at = self.offset(table, "symbols")?;
        let symbols: Vec<Symbol> = self.source.table(at, count, "symbols")?;
        let (start, size) = self.strings()?;
        let strings = self.source.range(start, size, "strings")?;
        let versions = self.versions(&strings)?;
        let indices = match self.tags.get(&elf::DT_VERSYM) {
            Some(&address) if !versions.is_empty() => {
                let at = self.offset(address, "versions of symbols")?;
                self.source.range(at, 2 * count, "versions of symbols")?
            }
            _ => Vec::new(),
        };
        let mut found = Symbols::default();
        for (index, symbol) in symbols.iter().enumerate().skip(1) {
            let name = text_at(&strings, symbol.st_name.get(LE) as usize)
                .ok_or_else(|| self.source.broken("name of a symbol"))?;
            if !wanted(name) {
                continue;
            }
            let name = name.to_owned();
            if symbol.st_shndx.get(LE) != elf::SHN_UNDEF {
                found.defined.push(name);
                continue;
            }
            let version = indices.get(2 * index..2 * index + 2);
            let version = version.map(|b| u16::from_le_bytes([b[0], b[1]]) & elf::VERSYM_VERSION);
            let version = version.and_then(|version| versions.get(&version).cloned());
            found.undefined.push(Undefined { name, version });
        }
        Ok(found)
    }

    /// The versions that the library needs, by their index.
    fn versions(&mut self, strings: &[u8]) -> Result<BTreeMap<u16, Version>, Error> {
        let Some(&address) = self.tags.get(&elf::DT_VERNEED) else { return Ok(BTreeMap::new()) };
        let what = "needed versions";
        let at = self.offset(address, what)?;
        // Nothing names the size of the table: its entries are chained. It has a few kilobytes.
        let size = (self.source.length - at).min(1 << 20);
        let bytes = self.source.range(at, size, what)?;
        let broken = || self.source.broken(what);
        let text = |at: u32| text_at(strings, at as usize).ok_or_else(broken);
        let mut versions = BTreeMap::new();
        let (mut at, mut more) = (0, true);
        while more {
            let file = entry::<Verneed>(&bytes, at).ok_or_else(broken)?;
            let mut entry_at = at + file.vn_aux.get(LE) as usize;
            for _ in 0..file.vn_cnt.get(LE) {
                let version = entry::<Vernaux>(&bytes, entry_at).ok_or_else(broken)?;
                entry_at += version.vna_next.get(LE) as usize;
                let index = version.vna_other.get(LE) & elf::VERSYM_VERSION;
                let file = text(file.vn_file.get(LE))?.to_owned();
                let name = text(version.vna_name.get(LE))?.to_owned();
                versions.insert(index, Version { file, name });
            }
            at += file.vn_next.get(LE) as usize;
            more = file.vn_next.get(LE) != 0;
        }
        Ok(versions)
    }

    /// The number of symbols, which only the hash tables tell.
    fn symbol_count(&mut self) -> Result<u64, Error> {
        if let Some(&address) = self.tags.get(&elf::DT_HASH) {
            let at = self.offset(address, "hash table")?;
            return Ok(u64::from(self.source.words(at, 2, "hash table")?[1]));
        }
        let what = "GNU hash table";
        let Some(&address) = self.tags.get(&elf::DT_GNU_HASH) else {
            return Err(self.source.broken("symbols without a hash table"));
        };
        let at = self.offset(address, what)?;
        let head = self.source.words(at, 4, what)?;
        let (buckets, base, bloom) = (head[0], head[1], head[2]);
        let at = at + 16 + 8 * u64::from(bloom);
        let last = self.source.words(at, u64::from(buckets), what)?.into_iter().max();
        let Some(mut last) = last.filter(|&last| last >= base) else { return Ok(base.into()) };
        // The chain of the last bucket ends with the last symbol, which has the lowest bit.
        let chains = at + 4 * u64::from(buckets);
        loop {
            let at = chains + 4 * u64::from(last - base);
            let count = (self.source.length.saturating_sub(at) / 4).min(256);
            let chain = self.source.words(at, count.max(1), what)?;
            match chain.iter().position(|word| word & 1 == 1) {
                Some(end) => return Ok(u64::from(last) + end as u64 + 1),
                None => last += chain.len() as u32,
            }
        }
    }

    /// Start and size of the strings of the dynamic segment, in the file.
    fn strings(&self) -> Result<(u64, u64), Error> {
        match (self.tags.get(&elf::DT_STRTAB), self.tags.get(&elf::DT_STRSZ)) {
            (Some(&address), Some(&size)) => Ok((self.offset(address, "strings")?, size)),
            _ => Err(self.source.broken("dynamic segment without strings")),
        }
    }

    fn string(&mut self, (start, size): (u64, u64), at: u64) -> Result<String, Error> {
        let what = "name of a library";
        if at >= size {
            return Err(self.source.broken(what));
        }
        let bytes = self.source.range(start + at, (size - at).min(1024), what)?;
        let text = text_at(&bytes, 0).ok_or_else(|| self.source.broken(what))?;
        Ok(text.to_owned())
    }

    /// The place in the file of an address.
    fn offset(&self, address: u64, what: &str) -> Result<u64, Error> {
        let inside = |load: &&Program| {
            address.checked_sub(load.p_vaddr(LE)).is_some_and(|at| at < load.p_filesz(LE))
        };
        let load = self.loads.iter().find(inside).ok_or_else(|| self.source.broken(what))?;
        let at = (address - load.p_vaddr(LE)).checked_add(load.p_offset(LE));
        at.filter(|at| *at < self.source.length).ok_or_else(|| self.source.broken(what))
    }

    /// The sections of the file. Empty if it has no table of them.
    pub(super) fn sections(&mut self) -> Result<Vec<SectionRange>, Error> {
        let what = "section headers";
        let (at, count) = (self.header.e_shoff.get(LE), self.header.e_shnum.get(LE));
        if at == 0 {
            return Ok(Vec::new());
        }
        let sections: Vec<Section> = self.source.table(at, count.into(), what)?;
        let Some(names) = sections.get(usize::from(self.header.e_shstrndx.get(LE))) else {
            return Ok(Vec::new());
        };
        let names =
            self.source.range(names.sh_offset.get(LE), names.sh_size.get(LE), "section names")?;
        let range = |section: &Section| {
            let name = text_at(&names, section.sh_name.get(LE) as usize)?.to_owned();
            let (offset, size) = (section.sh_offset.get(LE), section.sh_size.get(LE));
            Some(SectionRange { name, offset, size })
        };
        let found: Option<_> = sections.iter().map(range).collect();
        found.ok_or_else(|| self.source.broken("section names"))
    }

    /// The bytes of a section.
    pub(super) fn bytes(&mut self, section: &SectionRange) -> Result<Vec<u8>, Error> {
        self.source.range(section.offset, section.size, &section.name)
    }
}

/// A text up to its null byte.
fn text_at(bytes: &[u8], at: usize) -> Option<&str> {
    let bytes = bytes.get(at..)?;
    let end = memchr::memchr(0, bytes)?;
    std::str::from_utf8(&bytes[..end]).ok()
}

/// An entry of a chained table.
fn entry<T: Pod>(bytes: &[u8], at: usize) -> Option<&T> {
    Some(from_bytes(bytes.get(at..)?).ok()?.0)
}
