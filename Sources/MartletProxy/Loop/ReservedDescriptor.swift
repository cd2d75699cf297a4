private import CLinux
private import Synchronization

/// A file descriptor in reserve for when the process runs out of them.
struct ReservedDescriptor: ~Copyable {
    private let fd = Atomic<Int32>(-1)

    init() { acquire() }

    deinit { release() }

    /// Closes the descriptor, so that another can be opened.
    func release() {
        let held = fd.exchange(-1, ordering: .relaxed)
        if held >= 0 { close(held) }
    }

    /// Opens a descriptor for the reserve again, if possible.
    func acquire() {
        release()
        fd.store(eventfd(0, Int32(EFD_CLOEXEC)), ordering: .relaxed)
    }
}
