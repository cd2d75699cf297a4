import Glibc
import Testing

@testable import MartletProxy

/// The lowest number that no descriptor of the process has.
private func lowestFreeDescriptor() -> Int32 {
    let descriptor = dup(STDERR_FILENO)
    close(descriptor)
    return descriptor
}

// Each in a process of its own, where nothing else opens descriptors.
@Suite struct ReservedDescriptorTests {
    @Test func `holds one descriptor until it is released`() async {
        await #expect(processExitsWith: .success) {
            let first = lowestFreeDescriptor()
            let reserved = ReservedDescriptor()
            let second = lowestFreeDescriptor()
            precondition(second > first)
            reserved.release()
            precondition(lowestFreeDescriptor() == first)
            reserved.acquire()
            reserved.acquire()
            precondition(lowestFreeDescriptor() == second)
            reserved.release()
            precondition(lowestFreeDescriptor() == first)
        }
    }

    @Test func `a second release closes nothing, whoever has the number by then`() async {
        await #expect(processExitsWith: .success) {
            let reserved = ReservedDescriptor()
            reserved.release()
            let other = dup(STDERR_FILENO)
            reserved.release()
            precondition(dup(other) > other)
        }
    }

    @Test func `is closed with its owner`() async {
        await #expect(processExitsWith: .success) {
            let first = lowestFreeDescriptor()
            func hold() -> Bool {
                let reserved = ReservedDescriptor()
                let isHeld = lowestFreeDescriptor() > first
                reserved.acquire()
                return isHeld
            }
            precondition(hold())
            precondition(lowestFreeDescriptor() == first)
        }
    }
}
