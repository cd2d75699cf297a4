private import CLinux
internal import MartletCore

/// What the lines of a log are written to: a descriptor that the process was given, or a file that is opened by its
/// path, and again when it was renamed.
struct LogDestination: ~Copyable {
    /// Why lines could not be written, or a file not opened: the system's error message.
    struct Failure: Error, Equatable {
        let reason: String

        static var last: Failure {
            let number = martlet_errno()
            return Failure(reason: unsafe strerror(number).map { unsafe String(cString: $0) } ?? "error \(number)")
        }
    }

    /// The outcome of writing lines.
    struct Outcome: Equatable {
        var lost = 0
        var failure: Failure?
    }

    private static let mode: mode_t = 0o640

    private(set) var descriptor: Int32
    /// `nil` for a descriptor that is not the log's own.
    private let path: String?
    /// The last line that was written is incomplete.
    private var isTorn = false

    /// Writes to a descriptor that stays open.
    init(descriptor: Int32) {
        self.descriptor = descriptor
        path = nil
    }

    init(path: String) throws(Failure) {
        descriptor = try LogDestination.open(path)
        self.path = path
    }

    deinit {
        if path != nil { close(descriptor) }
    }

    /// Opens the path again; if that fails, lines go on to the file that is open.
    mutating func reopen() throws(Failure) {
        guard let path else { return }
        let next = try LogDestination.open(path)
        close(descriptor)
        descriptor = next
        isTorn = false
    }

    // A pipe without a reader must not block the start, nor a slow one the thread.
    private static func open(_ path: String) throws(Failure) -> Int32 {
        let descriptor = unsafe path.withCString {
            unsafe martlet_open_append($0, mode)
        }
        guard descriptor >= 0 else { throw .last }
        return descriptor
    }

    /// Writes whole lines; what cannot be written is lost.
    /// - Parameter wait: waits until a pipe may accept bytes again; `false` gives up.
    mutating func write(_ lines: UnsafeBufferPointer<UInt8>, wait: (Int32) -> Bool) -> Outcome {
        if isTorn {
            let lineFeed: [UInt8] = [0x0A]
            let (_, failure) = unsafe lineFeed.withUnsafeBufferPointer { unsafe put($0, wait: wait) }
            if let failure { return unsafe Outcome(lost: LogDestination.count(lines[...]), failure: failure) }
            isTorn = false
        }
        let (written, failure) = unsafe put(lines, wait: wait)
        guard written < lines.count else { return Outcome() }
        isTorn = unsafe written > 0 && lines[written - 1] != 0x0A
        return unsafe Outcome(lost: LogDestination.count(lines[written...]), failure: failure)
    }

    private func put(_ bytes: UnsafeBufferPointer<UInt8>, wait: (Int32) -> Bool) -> (count: Int, failure: Failure?) {
        var offset = 0
        while offset < bytes.count {
            let rest = unsafe UnsafeBufferPointer(rebasing: bytes[offset...])
            let written = unsafe CLinux.write(descriptor, rest.baseAddress, rest.count)
            if written > 0 {
                offset += written
            } else if martlet_errno() == EAGAIN {
                guard wait(descriptor) else { return (offset, .last) }
            } else if martlet_errno() != EINTR {
                return (offset, .last)
            }
        }
        return (offset, nil)
    }

    static func count(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> Int {
        unsafe bytes.reduce(0) { $0 + ($1 == 0x0A ? 1 : 0) }
    }
}
