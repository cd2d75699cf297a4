private import Glibc
internal import MartletAccounts
internal import MartletJSON
internal import MartletProvider

/// The file of exported users: one JSON object on each line.
enum TransferFile {
    static let maximumBytes = 256 * 1024 * 1024
    private static let limits = JSONLimits(maximumDepth: 2, maximumBytes: 8 * 1024)

    /// A line, without the line break.
    static func line(_ exported: RecordedTransfer) -> [UInt8] {
        JSON.write(
            [
                "sub": .string(exported.oldSubject), "transfer_sub": .string(exported.transfer.transferSubject),
                "from_team": .string(exported.transfer.fromTeam), "to_team": .string(exported.transfer.toTeam),
            ] as JSONObject)
    }

    /// Parses a file; empty lines are ignored.
    /// - Throws: an error that names the line.
    static func parse(_ bytes: [UInt8]) throws(ArgumentFileError) -> [RecordedTransfer] {
        var list: [RecordedTransfer] = []
        var number = 0
        for line in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
            number += 1
            guard line.contains(where: { $0 > 0x20 }) else { continue }
            guard let object = (try? JSON.parse(Array(line), limits: limits))?.object,
                let subject = text("sub", object), let name = text("transfer_sub", object),
                let from = text("from_team", object), let to = text("to_team", object)
            else {
                throw ArgumentFileError(
                    message: "line \(number) of the file is not an object with 'sub', 'transfer_sub', 'from_team' and "
                        + "'to_team'")
            }
            list.append(
                RecordedTransfer(
                    transfer: IdentityTransfer(transferSubject: name, fromTeam: from, toTeam: to), oldSubject: subject,
                    isDone: false))
        }
        return list
    }

    private static func text(_ name: String, _ object: JSONObject) -> String? {
        object[name]?.string.flatMap { (1...1024).contains($0.utf8.count) ? $0 : nil }
    }

    /// Replaces a file, which only its owner may read, as a whole.
    /// - Returns: why it could not be written; `nil` on success.
    static func write(_ bytes: [UInt8], to path: String) -> String? {
        let draft = path + ".new"
        unsafe unlink(draft)
        let descriptor = unsafe open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return SystemFile.reason() }
        var number = SystemFile.write(bytes, to: descriptor)
        if number == 0, fsync(descriptor) != 0 { number = errno }
        if close(descriptor) != 0, number == 0 { number = errno }
        if number == 0, unsafe rename(draft, path) != 0 { number = errno }
        guard number != 0 else { return nil }
        unsafe unlink(draft)
        return SystemFile.reason(number)
    }
}
