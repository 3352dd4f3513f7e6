//! Machine code of the functions of a shim: a jump through a slot that the loader fills.

use super::elf::Machine;

impl Machine {
    /// Bytes between the starts of two stubs.
    pub(super) fn stub_size(self) -> usize {
        match self {
            Self::X86_64 => 16,
            Self::Aarch64 => 32,
        }
    }

    /// The largest page of the processor's kernels: segments must not share one.
    pub(super) fn page(self) -> u64 {
        match self {
            Self::X86_64 => 0x1000,
            Self::Aarch64 => 0x1_0000,
        }
    }

    /// A stub at address `at` that jumps to the address in `slot`. With `name`, that address is in
    /// rax or x16 at the jump. Neither they nor x17 carry arguments.
    pub(super) fn stub(self, at: u64, slot: u64, name: Option<u64>) -> Vec<u8> {
        match self {
            Self::X86_64 => x86_64(at, slot, name),
            Self::Aarch64 => aarch64(at, slot, name),
        }
    }
}

fn x86_64(at: u64, slot: u64, name: Option<u64>) -> Vec<u8> {
    let mut code = Vec::with_capacity(16);
    let relative = |code: &mut Vec<u8>, opcode: &[u8], to: u64| {
        code.extend_from_slice(opcode);
        let next = at + code.len() as u64 + 4;
        code.extend_from_slice(&(to.wrapping_sub(next) as u32).to_le_bytes());
    };
    if let Some(name) = name {
        relative(&mut code, &[0x48, 0x8d, 0x05], name); // lea name(%rip), %rax
    }
    relative(&mut code, &[0xff, 0x25], slot); // jmp *slot(%rip)
    code.resize(Machine::X86_64.stub_size(), 0xcc); // int3
    code
}

fn aarch64(at: u64, slot: u64, name: Option<u64>) -> Vec<u8> {
    const X16: u32 = 16;
    const X17: u32 = 17;
    let mut code: Vec<u32> = Vec::with_capacity(8);
    // adrp register, to: the distance of the 4 KiB pages, 21 bits in two fields.
    let page = |code: &mut Vec<u32>, register: u32, to: u64| {
        let here = at + 4 * code.len() as u64;
        let pages = ((to >> 12).wrapping_sub(here >> 12)) as u32;
        code.push(0x9000_0000 | (pages & 3) << 29 | (pages >> 2 & 0x7_ffff) << 5 | register);
    };
    let low = |to: u64| (to & 0xfff) as u32;
    if let Some(name) = name {
        page(&mut code, X16, name);
        code.push(0x9100_0000 | low(name) << 10 | X16 << 5 | X16); // add x16, x16, #low
    }
    page(&mut code, X17, slot);
    code.push(0xf940_0000 | (low(slot) >> 3) << 10 | X17 << 5 | X17); // ldr x17, [x17, #low]
    code.push(0xd61f_0000 | X17 << 5); // br x17
    code.resize(Machine::Aarch64.stub_size() / 4, 0); // udf #0
    code.into_iter().flat_map(u32::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of `as` and `objdump` for the same addresses.
    #[test]
    fn stubs_of_x86_64_are_relative_to_the_next_instruction() {
        let known = Machine::X86_64.stub(0x2000, 0x4008, None);
        assert_eq!(known[..6], [0xff, 0x25, 0x02, 0x20, 0, 0]);
        let unknown = Machine::X86_64.stub(0x2010, 0x4008, Some(0x1000));
        assert_eq!(unknown[..7], [0x48, 0x8d, 0x05, 0xe9, 0xef, 0xff, 0xff]);
        assert_eq!(unknown[7..13], [0xff, 0x25, 0xeb, 0x1f, 0, 0]);
        assert_eq!((known.len(), unknown.len(), unknown[13]), (16, 16, 0xcc));
    }

    #[test]
    fn stubs_of_aarch64_load_page_and_rest() {
        let words = |code: &[u8]| -> Vec<u32> {
            code.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
        };
        let known = words(&Machine::Aarch64.stub(0x1_2000, 0x3_1238, None));
        // adrp x17, #0x1f000; ldr x17, [x17, #0x238]; br x17. 0x1f pages: low bits 3, rest 7.
        assert_eq!(known[..3], [0xf000_00f1, 0xf941_1e31, 0xd61f_0220]);
        let unknown = words(&Machine::Aarch64.stub(0x1_2020, 0x3_1238, Some(0x1004)));
        // adrp x16, #-0x11000; add x16, x16, #4. -0x11 pages: low bits 3, rest -5.
        assert_eq!(unknown[..2], [0xf0ff_ff70, 0x9100_1210]);
        assert_eq!(unknown[2..5], [0xf000_00f1, 0xf941_1e31, 0xd61f_0220]);
        assert_eq!((known.len(), unknown.len(), unknown[5]), (8, 8, 0));
    }
}
