//! Small ELF files with the names of the libraries of Nvidia.
