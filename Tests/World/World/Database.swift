import CLinux
import Glibc
import WorldMachine

/// The accounts of a world: SQLite with real files, in the folder of the world.
///
/// All gateways run in one process, and so does SQLite for them. Locks of POSIX exclude no thread of their own process,
/// but SQLite has a table of the files that it has open, by inode, and excludes connections to the same one from each
/// other by itself, so several gateways share a file as processes of a machine do. What that table cannot know is that a
/// process has ended: its locks would be held for ever, and its descriptors used by others. So where there are accounts a
/// gateway ends only if it is the only one, and the next process finds the same bytes in other inodes.
extension Simulation {
    var mayRestart: Bool { !plan.callers.hasAccounts || plan.gateways == 1 }

    /// Gives a process that starts after another files that SQLite has not seen.
    func renewDatabase() {
        guard plan.callers.hasAccounts, plan.gateways == 1 else { return }
        for name in ["accounts.db", "accounts.db-wal", "accounts.db-shm"] {
            let path = machine.folder + "/" + name
            guard let bytes = read(path) else { continue }
            // The old inode stays, so that its number is not given to another file.
            rename(path, path + ".\(incarnations)")
            // The index of the log is made from the log.
            if name.hasSuffix("shm") { continue }
            guard let file = fopen(path, "w") else { continue }
            _ = bytes.withUnsafeBytes { fwrite($0.baseAddress, 1, $0.count, file) }
            fchmod(fileno(file), 0o600)
            fclose(file)
        }
    }

    private func read(_ path: String) -> [UInt8]? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = fread(&buffer, 1, buffer.count, file)
            if count == 0 { return bytes }
            bytes += buffer.prefix(count)
        }
    }

    func removeFolder() {
        guard let folder = opendir(machine.folder) else { return }
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { unlink(machine.folder + "/" + name) }
        }
        closedir(folder)
        rmdir(machine.folder)
    }
}
