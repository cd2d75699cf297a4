import CLinux

extension Machine {
    /// Reading and writing.
    func transfer(_ number: Int, _ a: UnsafePointer<Int>) -> Int {
        guard let file = descriptors[a[0]] else { return -Int(EBADF) }
        if let real = file as? RealFile {
            if process.diskError == ENOSPC, [Linux.write, Linux.pwrite, Linux.writev].contains(number) {
                return -Int(ENOSPC)
            }
            return Linux.call(number, real.number, a[1], a[2], a[3], a[4], a[5])
        }
        switch number {
        case Linux.read: return read(file, a[1], a[2], flags: 0)
        case Linux.recvfrom: return read(file, a[1], a[2], flags: Int32(truncatingIfNeeded: a[3]))
        case Linux.write: return write(file, a[1], a[2], flags: 0)
        case Linux.sendto: return write(file, a[1], a[2], flags: Int32(truncatingIfNeeded: a[3]))
        case Linux.splice: return splice(file, a)
        case Linux.sendmsg, Linux.recvmsg:
            guard let message = UnsafePointer<msghdr>(bitPattern: a[1])?.pointee else { return -Int(EFAULT) }
            let flags = Int32(truncatingIfNeeded: a[2])
            return vector(file, message.msg_iov, Int(message.msg_iovlen), flags, reads: number == Linux.recvmsg)
        case Linux.readv, Linux.writev:
            return vector(file, UnsafeMutablePointer(bitPattern: a[1]), a[2], 0, reads: number == Linux.readv)
        default: return -Int(ESPIPE)
        }
    }

    private func doesNotBlock(_ file: File, _ flags: Int32) -> Bool {
        file.isNonBlocking || flags & Int32(MSG_DONTWAIT) != 0
    }

    private func read(_ file: File, _ address: Int, _ count: Int, flags: Int32) -> Int {
        let bytes = UnsafeMutableRawBufferPointer(start: UnsafeMutableRawPointer(bitPattern: address), count: count)
        let result = file.blocking(isNonBlocking: doesNotBlock(file, flags)) { file.read(into: bytes, flags: flags) }
        if result > 0 { trace.add(UnsafeRawBufferPointer(rebasing: bytes.prefix(min(result, count)))) }
        return result
    }

    private func write(_ file: File, _ address: Int, _ count: Int, flags: Int32) -> Int {
        let bytes = UnsafeRawBufferPointer(start: UnsafeRawPointer(bitPattern: address), count: count)
        trace.add(bytes)
        return file.blocking(isNonBlocking: doesNotBlock(file, flags)) { file.write(bytes, flags: flags) }
    }

    private func vector(
        _ file: File, _ parts: UnsafeMutablePointer<iovec>?, _ count: Int, _ flags: Int32, reads: Bool
    ) -> Int {
        var total = 0
        for index in 0..<count {
            guard let part = parts?[index], part.iov_len > 0 else { continue }
            let address = Int(bitPattern: part.iov_base)
            let moved =
                reads
                ? read(file, address, part.iov_len, flags: flags) : write(file, address, part.iov_len, flags: flags)
            if moved < 0 { return total > 0 ? total : moved }
            total += moved
            if moved < part.iov_len { break }
        }
        return total
    }

    private func splice(_ from: File, _ a: UnsafePointer<Int>) -> Int {
        guard let to = descriptors[a[2]] else { return -Int(EBADF) }
        // What the target has no room for stays in the source.
        var most = a[4]
        if let pipe = to as? PipeEnd {
            most = min(most, pipe.room)
            if most == 0 { return -Int(EAGAIN) }
        } else if let pipe = from as? PipeEnd {
            most = min(most, pipe.available)
            if most == 0 { return pipe.isAtEnd ? 0 : -Int(EAGAIN) }
        }
        return withUnsafeTemporaryAllocation(byteCount: most, alignment: 1) { bytes in
            if let pipe = from as? PipeEnd {
                let held = pipe.look(most)
                let written = held.withUnsafeBytes { to.write($0, flags: 0) }
                if written > 0 { pipe.drop(written) }
                return written
            }
            let count = from.read(into: bytes, flags: 0)
            guard count > 0 else { return count }
            trace.add(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes).prefix(count)))
            return to.write(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes).prefix(count)), flags: 0)
        }
    }
}

/// One end of a pipe.
final class PipeEnd: File {
    private final class Contents {
        var bytes: [UInt8] = []
        var capacity = 65_536
        weak var reader: PipeEnd?
        weak var writer: PipeEnd?
    }

    private let contents: Contents
    private let isReader: Bool

    private init(_ machine: Machine, _ contents: Contents, isReader: Bool) {
        self.contents = contents
        self.isReader = isReader
        super.init(machine)
    }

    static func make(_ machine: Machine) -> (PipeEnd, PipeEnd) {
        let contents = Contents()
        let (reader, writer) = (PipeEnd(machine, contents, isReader: true), PipeEnd(machine, contents, isReader: false))
        (contents.reader, contents.writer) = (reader, writer)
        return (reader, writer)
    }

    var room: Int { contents.capacity - contents.bytes.count }
    var available: Int { contents.bytes.count }
    var isAtEnd: Bool { contents.writer?.isClosed ?? true }

    override var ready: Ready {
        if isReader {
            return available > 0 ? .input : isAtEnd ? .hangUp : []
        }
        return contents.reader?.isClosed ?? true ? [.output, .error] : room > 0 ? .output : []
    }

    func setCapacity(_ bytes: Int) { contents.capacity = max(bytes, 4096) }
    func look(_ count: Int) -> [UInt8] { Array(contents.bytes.prefix(count)) }

    func drop(_ count: Int) {
        contents.bytes.removeFirst(min(count, contents.bytes.count))
        contents.writer?.changed(.output)
    }

    override func read(into bytes: UnsafeMutableRawBufferPointer, flags: Int32) -> Int {
        guard isReader else { return -Int(EBADF) }
        guard available > 0 else { return isAtEnd ? 0 : -Int(EAGAIN) }
        let taken = look(bytes.count)
        bytes.copyBytes(from: taken)
        drop(taken.count)
        return taken.count
    }

    override func write(_ bytes: UnsafeRawBufferPointer, flags: Int32) -> Int {
        guard let reader = contents.reader, !reader.isClosed else { return -Int(EPIPE) }
        let count = min(bytes.count, room)
        guard count > 0 else { return -Int(EAGAIN) }
        contents.bytes += bytes.prefix(count)
        reader.changed(.input)
        return count
    }

    override func closed() { (isReader ? contents.writer : contents.reader)?.changed([.hangUp, .error]) }
}
