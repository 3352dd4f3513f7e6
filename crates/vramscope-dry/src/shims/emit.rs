//! Writes a shim: a shared library whose functions jump to functions of another one.

use super::elf::Machine;
use super::layout::{Places, SEGMENTS, Sections, write_segments};
use object::write::StringId;
use object::write::elf::{FileHeader, Rel, Sym, Verdef, Writer};
use object::{Endianness, elf};
use std::collections::BTreeSet;

/// Symbols that a bucket of the hash table has on average.
const SYMBOLS_PER_BUCKET: u32 = 2;
/// The index of the first version. 0 is for local symbols, 1 for those without a version.
const FIRST_VERSION: u16 = 2;

/// A shim before it has bytes.
#[derive(Debug)]
pub(super) struct Shim<'a> {
    pub(super) machine: Machine,
    pub(super) soname: &'a str,
    /// The library with the functions that the stubs jump to.
    pub(super) needed: &'a str,
    /// The functions, sorted by name and version. The last version of a name is its default.
    pub(super) functions: &'a [Function<'a>],
    /// The target of functions without one. It gets the name of the function in a register.
    pub(super) unknown: &'a str,
}

/// A function of a shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Function<'a> {
    pub(super) name: &'a str,
    pub(super) version: Option<&'a str>,
    /// The function to jump to.
    pub(super) target: Option<&'a str>,
}

/// The tables that the parts are made of.
struct Tables<'a> {
    /// Undefined symbols, sorted.
    targets: Vec<&'a str>,
    versions: Vec<&'a str>,
    /// Names of functions without a target, each with its null byte.
    names: Vec<u8>,
    /// For each function, the place of its name in `names`.
    name_at: Vec<Option<usize>>,
}

impl<'a> Shim<'a> {
    /// The bytes of the file. Fails if a part is too large for the format.
    pub(super) fn bytes(&self) -> object::write::Result<Vec<u8>> {
        let tables = self.tables();
        let mut buffer = Vec::new();
        let mut writer = Writer::new(Endianness::Little, true, &mut buffer);

        // The first half reserves each part, the second writes the parts in the same order.
        let sections = Sections::reserve(&mut writer, !tables.versions.is_empty());
        let mut string = |text: &'a str| writer.add_dynamic_string(text.as_bytes());
        let soname = string(self.soname);
        let needed = string(self.needed);
        let targets: Vec<StringId> = tables.targets.iter().map(|t| string(t)).collect();
        let functions: Vec<StringId> = self.functions.iter().map(|f| string(f.name)).collect();
        let versions: Vec<StringId> = tables.versions.iter().map(|v| string(v)).collect();
        let dynamics = if versions.is_empty() { 13 } else { 16 };
        let places = self.places(&mut writer, &tables, dynamics);
        writer.reserve_shstrtab();
        writer.reserve_section_headers();

        writer.write_file_header(&FileHeader {
            os_abi: elf::ELFOSABI_NONE,
            abi_version: 0,
            e_type: elf::ET_DYN,
            e_machine: self.code(),
            e_entry: 0,
            e_flags: 0,
        })?;
        write_segments(&mut writer, &places, dynamics);
        self.write_symbols(&mut writer, &places, &sections, &targets, &functions);
        self.write_versions(&mut writer, &tables, soname, &versions);
        self.write_hash(&mut writer, &tables);
        self.write_relocations(&mut writer, &places, &tables);
        writer.write_dynstr();
        writer.write(&tables.names);
        writer.pad_until(places.text as usize);
        for (index, name) in tables.name_at.iter().enumerate() {
            let name = name.map(|at| places.names + at as u64);
            let (at, slot) = (places.stub(self.machine, index), places.slot(index));
            writer.write(&self.machine.stub(at, slot, name));
        }
        writer.pad_until(places.dynamic as usize);
        self.write_dynamic(&mut writer, &places, soname, needed, versions.len());
        writer.write_shstrtab();
        sections.write(&mut writer, &places);
        debug_assert_eq!(writer.reserved_len(), writer.len());
        Ok(buffer)
    }

    fn code(&self) -> u16 {
        match self.machine {
            Machine::X86_64 => elf::EM_X86_64,
            Machine::Aarch64 => elf::EM_AARCH64,
        }
    }

    fn target(&self, function: &Function<'a>) -> &'a str {
        function.target.unwrap_or(self.unknown)
    }

    fn tables(&self) -> Tables<'a> {
        let targets: BTreeSet<&str> = self.functions.iter().map(|f| self.target(f)).collect();
        let versions: BTreeSet<&str> = self.functions.iter().filter_map(|f| f.version).collect();
        let mut names = Vec::new();
        let mut name_at = Vec::with_capacity(self.functions.len());
        for function in self.functions {
            name_at.push(function.target.is_none().then_some(names.len()));
            if function.target.is_none() {
                names.extend_from_slice(function.name.as_bytes());
                names.push(0);
            }
        }
        let (targets, versions) = (targets.into_iter().collect(), versions.into_iter().collect());
        Tables { targets, versions, names, name_at }
    }

    fn places(&self, writer: &mut Writer<'_>, tables: &Tables<'_>, dynamics: usize) -> Places {
        for _ in 0..tables.targets.len() + self.functions.len() {
            writer.reserve_dynamic_symbol_index();
        }
        let symbols = writer.dynamic_symbol_count();
        let definitions = if tables.versions.is_empty() { 0 } else { 1 + tables.versions.len() };
        let count = self.functions.len();
        writer.reserve_file_header();
        writer.reserve_program_headers(SEGMENTS);
        let dynsym = writer.reserve_dynsym() as u64;
        let versym = if definitions > 0 { writer.reserve_gnu_versym() as u64 } else { 0 };
        let verdef = writer.reserve_gnu_verdef(definitions, definitions) as u64;
        let hash = writer.reserve_hash(buckets(symbols), symbols) as u64;
        let relocations = writer.reserve_relocations(count, true) as u64;
        let dynstr = writer.reserve_dynstr() as u64;
        let names = writer.reserve(tables.names.len(), 1) as u64;
        let text = writer.reserve(count * self.machine.stub_size(), 32) as u64;
        let slots = writer.reserve(count * 8, 16) as u64;
        let dynamic = writer.reserve_dynamic(dynamics) as u64;
        let end = writer.reserved_len() as u64;
        let page = self.machine.page();
        Places {
            page,
            dynsym,
            versym,
            verdef,
            hash,
            relocations,
            dynstr,
            names,
            text,
            slots,
            dynamic,
            end,
        }
    }

    fn write_symbols(
        &self,
        writer: &mut Writer<'_>,
        places: &Places,
        sections: &Sections,
        targets: &[StringId],
        functions: &[StringId],
    ) {
        let st_info = elf::STB_GLOBAL << 4 | elf::STT_FUNC;
        let symbol = |name, section, st_value, st_size| Sym {
            name: Some(name),
            section,
            st_info,
            st_other: elf::STV_DEFAULT,
            st_shndx: elf::SHN_UNDEF,
            st_value,
            st_size,
        };
        writer.write_null_dynamic_symbol();
        for name in targets {
            writer.write_dynamic_symbol(&symbol(*name, None, 0, 0));
        }
        let size = self.machine.stub_size() as u64;
        for (index, name) in functions.iter().enumerate() {
            let at = places.stub(self.machine, index);
            writer.write_dynamic_symbol(&symbol(*name, Some(sections.text.0), at, size));
        }
    }

    fn write_versions(
        &self,
        writer: &mut Writer<'_>,
        tables: &Tables<'_>,
        soname: StringId,
        versions: &[StringId],
    ) {
        if versions.is_empty() {
            return;
        }
        writer.write_null_gnu_versym();
        for _ in &tables.targets {
            writer.write_gnu_versym(elf::VER_NDX_GLOBAL);
        }
        let following = self.functions.iter().skip(1).map(Some).chain([None]);
        for (function, following) in self.functions.iter().zip(following) {
            let index = function.version.and_then(|v| tables.versions.binary_search(&v).ok());
            let index = index.map_or(elf::VER_NDX_GLOBAL, |index| index as u16 + FIRST_VERSION);
            let is_default = following.is_none_or(|next| next.name != function.name);
            let hidden = if is_default { 0 } else { elf::VERSYM_HIDDEN };
            writer.write_gnu_versym(index | hidden);
        }
        writer.write_align_gnu_verdef();
        let base = [(elf::VER_FLG_BASE, elf::VER_NDX_GLOBAL, soname)];
        let rest = versions.iter().zip(FIRST_VERSION..).map(|(name, index)| (0, index, *name));
        for (flags, index, name) in base.into_iter().chain(rest) {
            let version = elf::VER_DEF_CURRENT;
            writer.write_gnu_verdef(&Verdef { version, flags, index, aux_count: 1, name });
        }
    }

    fn write_hash(&self, writer: &mut Writer<'_>, tables: &Tables<'_>) {
        let symbols = writer.dynamic_symbol_count();
        let first = 1 + tables.targets.len();
        // Undefined symbols need no entry: no one looks for them here.
        writer.write_hash(buckets(symbols), symbols, |index| {
            let function = self.functions.get((index as usize).checked_sub(first)?)?;
            Some(elf::hash(function.name.as_bytes()))
        });
    }

    fn write_relocations(&self, writer: &mut Writer<'_>, places: &Places, tables: &Tables<'_>) {
        let r_type = match self.machine {
            Machine::X86_64 => elf::R_X86_64_GLOB_DAT,
            Machine::Aarch64 => elf::R_AARCH64_GLOB_DAT,
        };
        writer.write_align_relocation();
        for (index, function) in self.functions.iter().enumerate() {
            let target = self.target(function);
            let r_sym = 1 + tables.targets.partition_point(|t| *t < target) as u32;
            let r_offset = places.slot(index);
            writer.write_relocation(true, &Rel { r_offset, r_sym, r_type, r_addend: 0 });
        }
    }

    fn write_dynamic(
        &self,
        writer: &mut Writer<'_>,
        places: &Places,
        soname: StringId,
        needed: StringId,
        versions: usize,
    ) {
        let strings = writer.dynstr_len() as u64;
        writer.write_align_dynamic();
        writer.write_dynamic_string(elf::DT_NEEDED, needed);
        writer.write_dynamic_string(elf::DT_SONAME, soname);
        writer.write_dynamic(elf::DT_HASH, places.hash);
        writer.write_dynamic(elf::DT_STRTAB, places.dynstr);
        writer.write_dynamic(elf::DT_SYMTAB, places.dynsym);
        writer.write_dynamic(elf::DT_STRSZ, strings);
        writer.write_dynamic(elf::DT_SYMENT, 24);
        writer.write_dynamic(elf::DT_RELA, places.relocations);
        writer.write_dynamic(elf::DT_RELASZ, 24 * self.functions.len() as u64);
        writer.write_dynamic(elf::DT_RELAENT, 24);
        if versions > 0 {
            writer.write_dynamic(elf::DT_VERSYM, places.versym);
            writer.write_dynamic(elf::DT_VERDEF, places.verdef);
            writer.write_dynamic(elf::DT_VERDEFNUM, 1 + versions as u64);
        }
        writer.write_dynamic(elf::DT_FLAGS, elf::DF_BIND_NOW.into());
        writer.write_dynamic(elf::DT_FLAGS_1, elf::DF_1_NOW.into());
        writer.write_dynamic(elf::DT_NULL, 0);
    }
}

/// Buckets of the hash table.
fn buckets(symbols: u32) -> u32 {
    (symbols / SYMBOLS_PER_BUCKET).max(1)
}
