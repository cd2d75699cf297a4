private import CLinux

/// Why a file could not be read, in the system's words.
struct FileFailure: Error {
    let reason: String
    var isTooLarge = false
    /// There is no such file.
    var isMissing = false
}

/// Reads a regular file into memory; pipes and devices are refused, so that reading always ends.
func readWholeFile(_ path: String, limit: Int) throws(FileFailure) -> [UInt8] {
    guard !path.utf8.contains(0) else { throw FileFailure(reason: "the name has a NUL") }
    let descriptor = unsafe path.withCString { unsafe martlet_open_read_nonblocking($0) }
    guard descriptor >= 0 else { throw systemFailure() }
    defer { close(descriptor) }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw systemFailure() }
    guard status.st_mode & UInt32(S_IFMT) == UInt32(S_IFREG) else {
        throw FileFailure(reason: "it is not a regular file")
    }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 16 * 1024)
    while true {
        let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
        if count == 0 { return bytes }
        if count < 0 {
            if martlet_errno() == EINTR { continue }
            throw systemFailure()
        }
        bytes += chunk.prefix(count)
        guard bytes.count <= limit else {
            throw FileFailure(reason: "it is larger than \(ByteSize(bytes: limit).configurationText)", isTooLarge: true)
        }
    }
}

/// The system's words for the last failed call.
func systemFailure() -> FileFailure {
    let number = martlet_errno()
    guard let text = unsafe strerror(number) else { return FileFailure(reason: "error \(number)") }
    return FileFailure(reason: unsafe String(cString: text), isMissing: number == ENOENT)
}
