private import CLinux

/// Operations on memory that the standard library lacks.
@frozen package enum Memory {
    /// Zeroes memory that holds secrets; the compiler cannot remove this, although the memory is not read afterwards.
    package static func wipe(_ start: UnsafeMutableRawPointer, count: Int) { unsafe explicit_bzero(start, count) }

    /// Grows the heap of the calling thread in one step, before allocations that would grow it page by page.
    package static func stretchHeap(by count: Int) { martlet_stretch_heap(count) }
}
