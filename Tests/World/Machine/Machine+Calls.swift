import CLinux

extension Machine {
    /// What Linux serves, without a place in the trace.
    func passed(_ number: Int, _ a: UnsafePointer<Int>) -> Int? {
        if number == Linux.mmap, let file = descriptors[Int(Int32(truncatingIfNeeded: a[4]))] as? RealFile {
            return Linux.call(number, a[0], a[1], a[2], a[3], file.number, a[5])
        }
        if Linux.passed.contains(number) { return Linux.call(number, a[0], a[1], a[2], a[3], a[4], a[5]) }
        return switch number {
        case Linux.sigprocmask: mask(a)
        case Linux.gettid: threadID
        case Linux.prctl: 0
        default: nil
        }
    }

    /// Signals are never blocked: those that hand over system calls must arrive.
    private func mask(_ a: UnsafePointer<Int>) -> Int {
        if let old = UnsafeMutableRawPointer(bitPattern: a[2]) { old.storeBytes(of: 0, as: UInt64.self) }
        return 0
    }

    func perform(_ number: Int, _ a: UnsafePointer<Int>) -> Int {
        switch number {
        case Linux.futex: return futex(a)
        case Linux.read, Linux.write, Linux.recvfrom, Linux.sendto, Linux.sendmsg, Linux.recvmsg, Linux.readv,
            Linux.writev,
            Linux.pread, Linux.pwrite, Linux.splice:
            return transfer(number, a)
        case Linux.epollCreate: return descriptors.add(PollerFile(self), for: process)
        case Linux.epollControl: return control(a)
        case Linux.epollWait, Linux.epollPwait: return waitForEvents(a)
        case Linux.poll: return poll(a, milliseconds: Int(Int32(truncatingIfNeeded: a[2])))
        case Linux.ppoll: return poll(a, milliseconds: nanoseconds(at: a[2]).map { Int($0 / 1_000_000) } ?? -1)
        case Linux.eventfd:
            let file = EventCounter(self, UInt64(truncatingIfNeeded: a[0]), isSemaphore: a[1] & 1 != 0)
            file.isNonBlocking = a[1] & Int(O_NONBLOCK) != 0
            return descriptors.add(file, for: process)
        case Linux.timerfd: return descriptors.add(TimerFile(self), for: process)
        case Linux.timerfdSet: return setTimer(a)
        case Linux.close: return descriptors.close(a[0])
        case Linux.fcntl: return fileControl(a)
        case Linux.ioctl: return deviceControl(a)
        case Linux.getrandom:
            guard let target = UnsafeMutableRawPointer(bitPattern: a[0]) else { return -Int(EFAULT) }
            fill(UnsafeMutableRawBufferPointer(start: target, count: a[1]))
            return a[1]
        case Linux.yield:
            yield()
            return 0
        case Linux.nanosleep: return sleep(nanoseconds(at: a[0]) ?? 0)
        case Linux.clockNanosleep:
            let time = nanoseconds(at: a[2]) ?? 0
            return sleep(a[1] == 1 ? time - clock(Int32(truncatingIfNeeded: a[0])) : time)
        case Linux.clockGettime:
            guard let target = UnsafeMutablePointer<timespec>(bitPattern: a[1]) else { return -Int(EFAULT) }
            let time = clock(Int32(truncatingIfNeeded: a[0]))
            target.pointee = timespec(tv_sec: Int(time / 1_000_000_000), tv_nsec: Int(time % 1_000_000_000))
            return 0
        case Linux.getpid: return 1000 + process.id
        case Linux.getppid: return 1
        case Linux.sigtimedwait: return waitForSignal(a)
        case Linux.tgkill:
            fail("signal \(a[2]) was raised by a thread of \(process.name)")
            return Linux.call(Linux.exitGroup, 70)
        case Linux.exitGroup:
            exit(a[0])
            return 0
        case Linux.setpriority, Linux.setaffinity: return 0
        case Linux.getaffinity:
            // Two processors, wherever the world runs.
            guard a[1] >= 8, let mask = UnsafeMutablePointer<UInt64>(bitPattern: a[2]) else { return -Int(EINVAL) }
            mask.pointee = 3
            return 8
        case Linux.sysinfo, Linux.getrusage: return -Int(ENOSYS)
        default:
            return socketCall(number, a) ?? fileCall(number, a) ?? unknown(number)
        }
    }

    private func unknown(_ number: Int) -> Int {
        fail("the world has no system call \(number)")
        return -Int(ENOSYS)
    }

    // MARK: Time and signals

    private func nanoseconds(at address: Int) -> Int64? {
        guard let time = UnsafePointer<timespec>(bitPattern: address)?.pointee else { return nil }
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }

    private func sleep(_ nanoseconds: Int64) -> Int {
        _ = beginWait()
        wait(until: now + max(nanoseconds, 0))
        return 0
    }

    private func waitForSignal(_ a: UnsafePointer<Int>) -> Int {
        let process = process
        while process.pendingSignals.isEmpty {
            process.signalWaiters.append(beginWait())
            wait(until: nil)
        }
        let signal = process.pendingSignals.removeFirst()
        if let info = UnsafeMutableRawPointer(bitPattern: a[1]) { info.storeBytes(of: Int32(signal), as: Int32.self) }
        return signal
    }

    private func setTimer(_ a: UnsafePointer<Int>) -> Int {
        guard let timer = descriptors[a[0]] as? TimerFile,
            let setting = UnsafePointer<itimerspec>(bitPattern: a[2])?.pointee
        else { return -Int(EBADF) }
        let value = Int64(setting.it_value.tv_sec) * 1_000_000_000 + Int64(setting.it_value.tv_nsec)
        let interval = Int64(setting.it_interval.tv_sec) * 1_000_000_000 + Int64(setting.it_interval.tv_nsec)
        timer.set(value == 0 ? nil : a[1] & 1 != 0 ? value - past : now + value, every: interval)
        return 0
    }

    // MARK: Futexes

    private func futex(_ a: UnsafePointer<Int>) -> Int {
        guard let word = UnsafeMutablePointer<UInt32>(bitPattern: a[0]) else { return -Int(EFAULT) }
        let expected = UInt32(truncatingIfNeeded: a[2])
        switch a[1] & 0x7f {
        case 0, 9:  // WAIT, WAIT_BITSET
            guard word.pointee == expected else { return -Int(EAGAIN) }
            var deadline = nanoseconds(at: a[3])
            if let time = deadline {
                let isReal = a[1] & 0x100 != 0
                deadline = a[1] & 0x7f == 0 ? now + time : isReal ? time - epoch - process.clockOffset : time - past
            }
            futexes[UInt(bitPattern: a[0]), default: []].append(beginWait())
            return wait(until: deadline) ? 0 : -Int(ETIMEDOUT)
        case 1, 10: return wakeFutex(UInt(bitPattern: a[0]), Int(expected))
        case 3, 4:  // REQUEUE, CMP_REQUEUE: all wake, and look again
            return wakeFutex(UInt(bitPattern: a[0]), .max)
        case 6, 13: return lock(word)  // LOCK_PI
        case 7:  // UNLOCK_PI
            word.pointee = 0
            _ = wakeFutex(UInt(bitPattern: a[0]), .max)
            return 0
        case 8:  // TRYLOCK_PI
            guard word.pointee & 0x3fff_ffff == 0 else { return -Int(EAGAIN) }
            word.pointee = UInt32(threadID)
            return 0
        default: return unknown(Linux.futex * 1000 + (a[1] & 0x7f))
        }
    }

    private func lock(_ word: UnsafeMutablePointer<UInt32>) -> Int {
        while word.pointee & 0x3fff_ffff != 0 {
            word.pointee |= 0x8000_0000
            futexes[UInt(bitPattern: word), default: []].append(beginWait())
            wait(until: nil)
        }
        word.pointee = UInt32(threadID)
        return 0
    }

    private func wakeFutex(_ address: UInt, _ most: Int) -> Int {
        guard var waiters = futexes[address] else { return 0 }
        var woken = 0
        while woken < most, !waiters.isEmpty { if wake(waiters.removeFirst()) { woken += 1 } }
        futexes[address] = waiters.isEmpty ? nil : waiters
        return woken
    }

    // MARK: Waiting for files

    private func control(_ a: UnsafePointer<Int>) -> Int {
        guard let poller = descriptors[a[0]] as? PollerFile, let file = descriptors[a[2]] else { return -Int(EBADF) }
        if a[1] == 1, process.watchError != 0 { return -Int(process.watchError) }
        return poller.control(a[1], a[2], file, UnsafePointer<epoll_event>(bitPattern: a[3])?.pointee)
    }

    private func waitForEvents(_ a: UnsafePointer<Int>) -> Int {
        guard let poller = descriptors[a[0]] as? PollerFile,
            let events = UnsafeMutablePointer<epoll_event>(bitPattern: a[1])
        else { return -Int(EBADF) }
        let milliseconds = Int(Int32(truncatingIfNeeded: a[3]))
        let deadline = milliseconds < 0 ? nil : now + Int64(milliseconds) * 1_000_000
        while true {
            let count = poller.collect(events, a[2])
            if count > 0 || milliseconds == 0 { return count }
            poller.waiters.append(beginWait())
            if !wait(until: deadline) { return poller.collect(events, a[2]) }
            if poller.isClosed { return -Int(EBADF) }
        }
    }

    private func poll(_ a: UnsafePointer<Int>, milliseconds: Int) -> Int {
        let polled = UnsafeMutableBufferPointer(start: UnsafeMutablePointer<pollfd>(bitPattern: a[0]), count: a[1])
        let deadline = milliseconds < 0 ? nil : now + Int64(milliseconds) * 1_000_000
        while true {
            var count = 0
            for index in polled.indices {
                guard polled[index].fd >= 0 else { continue }
                let wanted = Ready(rawValue: UInt32(UInt16(bitPattern: polled[index].events)))
                let found = descriptors[Int(polled[index].fd)].map { $0.ready.intersection(wanted.union(.always)) }
                polled[index].revents = Int16(truncatingIfNeeded: found?.rawValue ?? 0x20)
                if polled[index].revents != 0 { count += 1 }
            }
            if count > 0 || milliseconds == 0 { return count }
            let waiter = beginWait()
            for each in polled where each.fd >= 0 { descriptors[Int(each.fd)]?.waiters.append(waiter) }
            if !wait(until: deadline) { return 0 }
        }
    }
}
