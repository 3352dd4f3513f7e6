//! Segments and sections of a shim: where its parts are in the file and in memory.

use super::elf::Machine;
use object::elf;
use object::write::StringId;
use object::write::elf::{ProgramHeader, SectionHeader, SectionIndex, Writer};

/// Loaded segments, the dynamic segment, the stack.
pub(super) const SEGMENTS: u32 = 5;

/// Offsets of the parts in the file. The address of a part is its offset plus one page for each
/// segment before it. So two segments share a page of the file, and none in memory.
pub(super) struct Places {
    pub(super) page: u64,
    pub(super) dynsym: u64,
    pub(super) versym: u64,
    pub(super) verdef: u64,
    pub(super) hash: u64,
    pub(super) relocations: u64,
    pub(super) dynstr: u64,
    pub(super) names: u64,
    pub(super) text: u64,
    pub(super) slots: u64,
    pub(super) dynamic: u64,
    pub(super) end: u64,
}

impl Places {
    pub(super) fn stub(&self, machine: Machine, index: usize) -> u64 {
        self.text + self.page + (index * machine.stub_size()) as u64
    }

    pub(super) fn slot(&self, index: usize) -> u64 {
        self.slots + 2 * self.page + 8 * index as u64
    }
}

/// Writes the program headers.
pub(super) fn write_segments(writer: &mut Writer<'_>, places: &Places, dynamics: usize) {
    let page = places.page;
    let mut segment = |p_type, p_flags, from: u64, to: u64, shift: u64, p_align| {
        let (p_vaddr, p_filesz) = (from + shift, to - from);
        writer.write_program_header(&ProgramHeader {
            p_type,
            p_flags,
            p_offset: from,
            p_vaddr,
            p_paddr: p_vaddr,
            p_filesz,
            p_memsz: p_filesz,
            p_align,
        });
    };
    let dynamic_end = places.dynamic + 16 * dynamics as u64;
    let (read, write, execute) = (elf::PF_R, elf::PF_R | elf::PF_W, elf::PF_R | elf::PF_X);
    segment(elf::PT_LOAD, read, 0, places.text, 0, page);
    segment(elf::PT_LOAD, execute, places.text, places.slots, page, page);
    segment(elf::PT_LOAD, write, places.slots, places.end, 2 * page, page);
    segment(elf::PT_DYNAMIC, write, places.dynamic, dynamic_end, 2 * page, 8);
    segment(elf::PT_GNU_STACK, write, 0, 0, 0, 16);
}

/// Sections are for linkers: Triton links what it compiles to `libcuda.so.1`.
pub(super) struct Sections {
    has_versions: bool,
    relocations: StringId,
    names: StringId,
    pub(super) text: (SectionIndex, StringId),
    slots: StringId,
}

impl Sections {
    pub(super) fn reserve(writer: &mut Writer<'_>, has_versions: bool) -> Self {
        writer.reserve_null_section_index();
        writer.reserve_dynsym_section_index();
        if has_versions {
            writer.reserve_gnu_versym_section_index();
            writer.reserve_gnu_verdef_section_index();
        }
        writer.reserve_hash_section_index();
        let mut section = |name: &'static [u8]| {
            let name = writer.add_section_name(name);
            (writer.reserve_section_index(), name)
        };
        let (_, relocations) = section(b".rela.dyn");
        let (_, names) = section(b".rodata");
        let text = section(b".text");
        let (_, slots) = section(b".got");
        writer.reserve_dynstr_section_index();
        writer.reserve_dynamic_section_index();
        writer.reserve_shstrtab_section_index();
        Self { has_versions, relocations, names, text, slots }
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>, places: &Places) {
        let page = places.page;
        writer.write_null_section_header();
        writer.write_dynsym_section_header(places.dynsym, 1);
        if self.has_versions {
            writer.write_gnu_versym_section_header(places.versym);
            writer.write_gnu_verdef_section_header(places.verdef);
        }
        writer.write_hash_section_header(places.hash);
        let dynsym = writer.dynsym_index().0;
        let mut section = |name, sh_type, flags: u32, from: u64, to: u64, shift, align| {
            let is_relocations = sh_type == elf::SHT_RELA;
            writer.write_section_header(&SectionHeader {
                name: Some(name),
                sh_type,
                sh_flags: (elf::SHF_ALLOC | flags).into(),
                sh_addr: from + shift,
                sh_offset: from,
                sh_size: to - from,
                sh_link: if is_relocations { dynsym } else { 0 },
                sh_info: 0,
                sh_addralign: align,
                sh_entsize: if is_relocations { 24 } else { 0 },
            });
        };
        let Places { relocations, dynstr, names, text, slots, dynamic, .. } = *places;
        let count = (dynamic - slots) / 8;
        let (data, code) = (elf::SHT_PROGBITS, elf::SHF_EXECINSTR);
        section(self.relocations, elf::SHT_RELA, 0, relocations, relocations + 24 * count, 0, 8);
        section(self.names, data, 0, names, text, 0, 1);
        section(self.text.1, data, code, text, slots, page, 32);
        section(self.slots, data, elf::SHF_WRITE, slots, dynamic, 2 * page, 16);
        writer.write_dynstr_section_header(dynstr);
        writer.write_dynamic_section_header(dynamic + 2 * page);
        writer.write_shstrtab_section_header();
    }
}
