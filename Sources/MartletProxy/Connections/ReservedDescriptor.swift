private import CLinux
private import Synchronization

/// A descriptor kept back for the moment when the process has none left.
struct ReservedDescriptor: ~Copyable {
    private let fd = Atomic<Int32>(-1)

    init() { take() }

    deinit { free() }

    /// Makes a descriptor available.
    func free() {
        let held = fd.exchange(-1, ordering: .relaxed)
        if held >= 0 { close(held) }
    }

    /// Keeps one back again, if there is one.
    func take() {
        free()
        fd.store(eventfd(0, Int32(EFD_CLOEXEC)), ordering: .relaxed)
    }
}
