internal import CLinux

/// Why a file could not be read, with the system's error message.
@frozen package struct FileReadError: Error {
    package let reason: String
    package internal(set) var isTooLarge = false
    /// Whether the file does not exist.
    package internal(set) var isMissing = false

    package init(reason: String, isTooLarge: Bool = false, isMissing: Bool = false) {
        self.reason = reason
        self.isTooLarge = isTooLarge
        self.isMissing = isMissing
    }
}

/// Reads a regular file into memory. Pipes and devices are rejected, so that reading always ends.
package func readWholeFile(_ path: String, limit: Int) throws(FileReadError) -> [UInt8] {
    try withRegularFile(path) { descriptor, _ throws(FileReadError) in try contents(of: descriptor, limit: limit) }
}

/// Calls back with a regular file that was opened for reading, and its status.
func withRegularFile<Result>(
    _ path: String, _ body: (_ descriptor: Int32, _ status: stat) throws(FileReadError) -> Result
) throws(FileReadError) -> Result {
    guard !path.utf8.contains(0) else { throw FileReadError(reason: "the name contains a NUL byte") }
    let descriptor = unsafe path.withCString { unsafe martlet_open_read_nonblocking($0) }
    guard descriptor >= 0 else { throw systemError() }
    defer { close(descriptor) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw systemError() }
    guard status.st_mode & UInt32(S_IFMT) == UInt32(S_IFREG) else {
        throw FileReadError(reason: "not a regular file")
    }
    return try body(descriptor, status)
}

private func contents(of descriptor: Int32, limit: Int) throws(FileReadError) -> [UInt8] {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16 * 1024)
    while true {
        let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
        if count == 0 { return bytes }
        if count < 0 {
            if martlet_errno() == EINTR { continue }
            throw systemError()
        }
        bytes += chunk.prefix(count)
        guard bytes.count <= limit else {
            throw FileReadError(reason: "larger than \(ByteSize(bytes: limit).configurationText)", isTooLarge: true)
        }
    }
}

func systemError() -> FileReadError {
    let number = martlet_errno()
    guard let text = unsafe strerror(number) else { return FileReadError(reason: "error \(number)") }
    return FileReadError(reason: unsafe String(cString: text), isMissing: number == ENOENT)
}
