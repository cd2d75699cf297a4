private import CLinux
internal import MartletCore

/// A file of lines. It is locked while it is open, so that a second process cannot write it.
final class FileSink: AuditSink {
    private struct State {
        var descriptor: Int32 = -1
        /// The size of a regular file when it was last looked at; `nil` for a device.
        var size: Int64?
        var needsBreak = false
        /// The file that takes the place of one that was moved.
        var next: Int32 = -1
    }

    private let path: String
    private let state = Lock(State())

    init(path: String) { self.path = path }

    deinit { close() }

    let name = "file"
    let retryLimit = Duration.milliseconds(250)
    let isCertain = true

    func open() throws(AuditError) -> AuditStart {
        let (descriptor, size) = try opened()
        guard let size, size > 0 else {
            state.withLock { $0 = State(descriptor: descriptor, size: size) }
            return .new(torn: nil)
        }
        let end = Self.end(of: descriptor, size: size)
        guard let tail = AuditTail(end) else {
            guard size == end.count, end.starts(with: "{\"seq\":".utf8), !end.contains(0x0A) else {
                CLinux.close(descriptor)
                throw AuditError(.auditFileForeign, "\(path) has other content than lines of an audit log")
            }
            state.withLock { $0 = State(descriptor: descriptor, size: size, needsBreak: true) }
            return .new(torn: AuditChain.hash(end))
        }
        state.withLock { $0 = State(descriptor: descriptor, size: size, needsBreak: tail.needsBreak) }
        return .behind(tail)
    }

    /// Opens and locks the file.
    private func opened() throws(AuditError) -> (descriptor: Int32, size: Int64?) {
        let descriptor = unsafe martlet_open_log(path)
        guard descriptor >= 0 else {
            throw AuditError(.auditFileUnavailable, "cannot open \(path): \(systemReason(martlet_errno()))")
        }
        var status = stat()
        let isRegular =
            unsafe fstat(descriptor, &status) == 0 && status.st_mode & UInt32(S_IFMT) == UInt32(S_IFREG)
        guard isRegular else { return (descriptor, nil) }
        guard martlet_lock_file(descriptor) == 0 else {
            CLinux.close(descriptor)
            throw AuditError(.auditFileInUse, "another process writes \(path)")
        }
        return (descriptor, Int64(status.st_size))
    }

    private static func end(of descriptor: Int32, size: Int64) -> [UInt8] {
        let count = Int(min(size, Int64(AuditTail.bytes)))
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let offset = size - Int64(count) + Int64(filled)
            let read = unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe pread(descriptor, buffer.baseAddress?.advanced(by: filled), count - filled, off_t(offset))
            }
            if read < 0, martlet_errno() == EINTR { continue }
            guard read > 0 else { break }
            filled += read
        }
        return Array(bytes.prefix(filled))
    }

    func write(_ lines: ArraySlice<OutputLine>, until isOver: @Sendable () -> Bool) -> WriteOutcome {
        state.withLock { state in
            guard state.descriptor >= 0 else { return .broken(AuditError(.auditNotWritten, "\(path) is not open")) }
            // Right before the write: between both, someone could empty the file unnoticed.
            guard !Self.findEmptied(&state) else { return .emptied }
            var bytes: [UInt8] = state.needsBreak ? [0x0A] : []
            for line in lines { bytes += line.bytes + [0x0A] }
            let (written, number) = Self.append(bytes, to: state.descriptor)
            guard written < bytes.count else {
                state.needsBreak = false
                state.size? += Int64(written)
                if lines.contains(where: \.isHead) { _ = fdatasync(state.descriptor) }
                return .written
            }
            let error = AuditError(.auditNotWritten, "cannot write \(path): \(systemReason(number))")
            guard written > 0, let size = state.size else { return .failed(written: 0, error) }
            // A part of a line would look as if someone had changed it.
            guard ftruncate(state.descriptor, off_t(size)) == 0 else { return .broken(error) }
            return .failed(written: 0, error)
        }
    }

    private static func size(of descriptor: Int32) -> Int64? {
        var status = stat()
        return unsafe fstat(descriptor, &status) == 0 ? Int64(status.st_size) : nil
    }

    /// - Returns: how many bytes are written, and why the others are not.
    private static func append(_ bytes: [UInt8], to descriptor: Int32) -> (written: Int, number: Int32) {
        var written = 0
        while written < bytes.count {
            let count = unsafe bytes.withUnsafeBytes { buffer in
                unsafe CLinux.write(descriptor, buffer.baseAddress?.advanced(by: written), bytes.count - written)
            }
            if count < 0, martlet_errno() == EINTR { continue }
            guard count > 0 else { return (written, count < 0 ? martlet_errno() : EIO) }
            written += count
        }
        return (written, 0)
    }

    func prepareRotation() throws(AuditError) -> Bool {
        let (current, isRegular) = state.withLock { ($0.descriptor, $0.size != nil) }
        guard isRegular, !isSame(current) else { return false }
        let (next, size) = try opened()
        guard size == 0 else {
            CLinux.close(next)
            throw AuditError(.auditFileForeign, "\(path) was replaced by a file that is not empty")
        }
        state.withLock { $0.next = next }
        return true
    }

    /// Whether the path still names the open file.
    private func isSame(_ descriptor: Int32) -> Bool {
        var (open, named) = (stat(), stat())
        guard unsafe fstat(descriptor, &open) == 0 else { return true }
        guard unsafe stat(path, &named) == 0 else { return martlet_errno() != ENOENT }
        return open.st_dev == named.st_dev && open.st_ino == named.st_ino
    }

    func rotate() {
        state.withLock { state in
            guard state.next >= 0 else { return }
            CLinux.close(state.descriptor)
            state = State(descriptor: state.next, size: 0)
        }
    }

    var wasEmptied: Bool { state.withLock { Self.findEmptied(&$0) } }

    /// Whether a file that had lines has none any more; looks at its size, which others may have changed.
    private static func findEmptied(_ state: inout State) -> Bool {
        guard let before = state.size else { return false }
        state.size = size(of: state.descriptor)
        guard before > 0, state.size == 0 else { return false }
        state.needsBreak = false
        return true
    }

    func close() {
        state.withLock { state in
            if state.descriptor >= 0 { CLinux.close(state.descriptor) }
            if state.next >= 0 { CLinux.close(state.next) }
            state = State()
        }
    }
}
