import CLinux

/// The readiness of a file, with the values of poll and epoll.
package struct Ready: OptionSet {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package static let input = Ready(rawValue: 0x001)
    package static let output = Ready(rawValue: 0x004)
    package static let error = Ready(rawValue: 0x008)
    package static let hangUp = Ready(rawValue: 0x010)
    package static let readHangUp = Ready(rawValue: 0x2000)
    /// Reported whether or not it was asked for.
    static let always: Ready = [.error, .hangUp]
    /// Of a connection that was reset.
    static let broken: Ready = [.input, .output, .hangUp, .readHangUp]
}

/// What a descriptor refers to.
package class File {
    unowned let machine: Machine
    /// The process that has descriptors of it.
    package internal(set) var owner: Process
    var references = 0
    var isNonBlocking = false
    var isClosed = false
    var interests: [Interest] = []
    var waiters: [Waiter] = []

    init(_ machine: Machine) {
        self.machine = machine
        owner = machine.process
    }

    var ready: Ready { [] }
    /// - Returns: the number of bytes, or a negated errno.
    func read(into bytes: UnsafeMutableRawBufferPointer, flags: Int32) -> Int { -Int(EINVAL) }
    func write(_ bytes: UnsafeRawBufferPointer, flags: Int32) -> Int { -Int(EINVAL) }
    /// Its last descriptor was closed.
    func closed() {}

    /// Tells those who wait that something has happened.
    func changed(_ what: Ready) {
        machine.wakeAll(&waiters)
        var isExclusive = false
        for interest in interests where !interest.events.isDisjoint(with: what) || !what.isDisjoint(with: .always) {
            // One of those that want to be woken alone.
            if interest.isExclusive {
                if isExclusive { continue }
                isExclusive = interest.poller.waits
            }
            interest.poller.add(interest)
        }
    }

    /// Does something that may have to wait for the file.
    func blocking(
        isNonBlocking: Bool, until deadline: Int64? = nil, _ attempt: () -> Int
    ) -> Int {
        while true {
            let result = attempt()
            guard result == -Int(EAGAIN), !isNonBlocking else { return result }
            waiters.append(machine.beginWait())
            if !machine.wait(until: deadline) { return result }
        }
    }
}

/// A counter of events (`eventfd`).
final class EventCounter: File {
    private var count: UInt64
    private let isSemaphore: Bool

    init(_ machine: Machine, _ count: UInt64, isSemaphore: Bool) {
        self.count = count
        self.isSemaphore = isSemaphore
        super.init(machine)
    }

    override var ready: Ready { count > 0 ? [.input, .output] : [.output] }

    override func read(into bytes: UnsafeMutableRawBufferPointer, flags: Int32) -> Int {
        guard bytes.count >= 8 else { return -Int(EINVAL) }
        guard count > 0 else { return -Int(EAGAIN) }
        bytes.storeBytes(of: isSemaphore ? 1 : count, as: UInt64.self)
        count = isSemaphore ? count - 1 : 0
        changed(.output)
        return 8
    }

    override func write(_ bytes: UnsafeRawBufferPointer, flags: Int32) -> Int {
        guard bytes.count >= 8 else { return -Int(EINVAL) }
        count &+= bytes.loadUnaligned(as: UInt64.self)
        changed(.input)
        return 8
    }
}

/// A timer (`timerfd`).
final class TimerFile: File {
    private var due: Int64?
    private var interval: Int64 = 0
    private var generation = 0

    override var ready: Ready { (due ?? .max) <= machine.now ? .input : [] }

    func set(_ time: Int64?, every interval: Int64) {
        generation += 1
        due = time
        self.interval = interval
        guard let time else { return }
        let current = generation
        machine.at(time) { [self] in if current == generation, !isClosed { changed(.input) } }
    }

    override func read(into bytes: UnsafeMutableRawBufferPointer, flags: Int32) -> Int {
        guard bytes.count >= 8 else { return -Int(EINVAL) }
        guard let due, due <= machine.now else { return -Int(EAGAIN) }
        let missed = interval > 0 ? (machine.now - due) / interval : 0
        bytes.storeBytes(of: UInt64(missed + 1), as: UInt64.self)
        set(interval > 0 ? due + (missed + 1) * interval : nil, every: interval)
        return 8
    }
}

/// A file of Linux.
final class RealFile: File {
    let number: Int

    init(_ machine: Machine, _ number: Int) {
        self.number = number
        super.init(machine)
    }

    override var ready: Ready { [.input, .output] }
    override func closed() { _ = Linux.call(3, number) }
}

/// Standard output or error of the process that writes.
final class Console: File {
    private let isError: Bool

    init(_ machine: Machine, isError: Bool) {
        self.isError = isError
        super.init(machine)
    }

    override var ready: Ready { .output }
    override func write(_ bytes: UnsafeRawBufferPointer, flags: Int32) -> Int {
        let process = machine.process
        if !isError, process.outputError != 0 { return -Int(process.outputError) }
        machine.trace.note("\(process.name) prints " + String(decoding: bytes, as: UTF8.self))
        process.printed(bytes, isError)
        return bytes.count
    }
}

/// What a process had that does not exist any more.
private final class DeadFile: File {}

/// The descriptors of all processes: each number exists once, so that code which runs for another process in error
/// does not use the wrong file.
final class Descriptors {
    private(set) var files: [File?] = [nil, nil, nil]
    /// Numbers below are taken.
    private var firstFree = 3

    func openConsoles(_ machine: Machine) {
        files[1] = Console(machine, isError: false)
        files[2] = Console(machine, isError: true)
    }

    subscript(number: Int) -> File? {
        guard files.indices.contains(number), let file = files[number] else { return nil }
        return file is DeadFile ? nil : file
    }

    /// - Returns: the number, or `-EMFILE`.
    func add(_ file: File, for process: Process) -> Int {
        file.owner = process
        guard file.owner.descriptors < file.owner.descriptorLimit else { return -Int(EMFILE) }
        guard !file.owner.isDead else { return -Int(EBADF) }
        while firstFree < files.count, files[firstFree] != nil { firstFree += 1 }
        if firstFree == files.count { files.append(nil) }
        files[firstFree] = file
        file.references += 1
        file.owner.descriptors += 1
        return firstFree
    }

    func replace(_ number: Int, by file: File) {
        file.references = 1
        file.owner = files[number]?.owner ?? file.owner
        files[number] = file
    }

    func close(_ number: Int) -> Int {
        guard number > 2, let file = self[number] else { return number > 2 ? -Int(EBADF) : 0 }
        files[number] = nil
        firstFree = min(firstFree, number)
        file.owner.descriptors -= 1
        file.references -= 1
        if file.references == 0 { end(file) }
        return 0
    }

    func closeAll(of process: Process) {
        for number in files.indices.dropFirst(3) where files[number]?.owner === process {
            guard let file = files[number] else { continue }
            _ = close(number)
            // Its tasks may go on for a while: their number belongs to no other file.
            files[number] = DeadFile(file.machine)
        }
    }

    private func end(_ file: File) {
        file.isClosed = true
        for interest in file.interests { interest.poller.remove(interest) }
        file.interests.removeAll()
        file.closed()
        file.machine.wakeAll(&file.waiters)
    }
}
