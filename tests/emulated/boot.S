/* Starts an emulated processor for kernel.c: 64-bit mode, memory at its own addresses, all vector
 * registers that the processor has. Everything runs in ring 0, with interrupts off. */
    .section .text.boot, "ax"
    .code32
    .align 4
header:
    .long 0x1badb002, 0x00010003, -(0x1badb002 + 0x00010003)
    .long header, load_start, load_end, bss_end, start
    .globl start
start:
    cli
    mov $boot_stack_top, %esp
    /* Identity map of 4 GiB in pages of 2 MiB. */
    mov $pml4, %edi
    movl $pdpt + 7, (%edi)
    mov $pdpt, %edi
    movl $pds + 7, (%edi)
    movl $pds + 0x1007, 8(%edi)
    movl $pds + 0x2007, 16(%edi)
    movl $pds + 0x3007, 24(%edi)
    mov $pds, %edi
    mov $0x87, %eax
    mov $2048, %ecx
1:  mov %eax, (%edi)
    add $0x200000, %eax
    add $8, %edi
    loop 1b
    mov $0x50620, %eax /* OSXSAVE, FSGSBASE, OSXMMEXCPT, OSFXSR, PAE */
    mov %eax, %cr4
    mov $pml4, %eax
    mov %eax, %cr3
    mov $0xc0000080, %ecx /* EFER: long mode, syscall */
    rdmsr
    or $0x101, %eax
    wrmsr
    mov $0x80000033, %eax /* paging, protection; no emulation of the floating point unit */
    mov %eax, %cr0
    lgdt gdt_pointer
    ljmp $8, $long_mode
    .code64
long_mode:
    mov $16, %eax
    mov %eax, %ds
    mov %eax, %es
    mov %eax, %ss
    mov $boot_stack_top, %rsp
    mov $0xd, %eax
    xor %ecx, %ecx
    cpuid
    and $0xe7, %eax /* x87, SSE, AVX, AVX-512, as far as there are */
    xor %ecx, %ecx
    xor %edx, %edx
    xsetbv
    lidt idt_pointer
    mov $0xc0000081, %ecx /* STAR: syscall stays in this ring */
    xor %eax, %eax
    mov $8, %edx
    wrmsr
    mov $0xc0000082, %ecx /* LSTAR */
    lea system_call(%rip), %rax
    mov %rax, %rdx
    shr $32, %rdx
    wrmsr
    mov $0xc0000084, %ecx /* flags that syscall clears: interrupts, direction, trap */
    mov $0x700, %eax
    xor %edx, %edx
    wrmsr
    call kernel_main
1:  hlt
    jmp 1b

    /* The user's stack below rsp is not touched: it may be in use. */
system_call:
    mov %rsp, user_stack(%rip)
    mov $kernel_stack_top, %rsp
    push %rcx
    push %rdi
    push %rsi
    push %rdx
    push %r10
    push %r8
    push %r9
    mov %rsp, %rsi
    mov %rax, %rdi
    call handle_system_call
    pop %r9
    pop %r8
    pop %r10
    pop %rdx
    pop %rsi
    pop %rdi
    pop %rcx
    mov user_stack(%rip), %rsp
    jmp *%rcx

    .globl enter_program
enter_program: /* rdi: entry, rsi: stack */
    mov %rsi, %rsp
    mov %rdi, %rax
    xor %edx, %edx
    jmp *%rax

    .macro fault vector, has_code
    .globl fault_\vector
fault_\vector:
    .if !\has_code
    push $0
    .endif
    push $\vector
    jmp fault_common
    .endm
fault_common:
    mov %rsp, %rdi
    and $-16, %rsp
    call handle_fault
    .irp n, 0,1,2,3,4,5,6,7,9,15,16,18,19
    fault \n, 0
    .endr
    .irp n, 8,10,11,12,13,14,17
    fault \n, 1
    .endr
    .section .data
    .align 16
gdt: .quad 0, 0x00af9a000000ffff, 0x00cf92000000ffff
gdt_pointer: .word 23
    .long gdt, 0
    .globl idt
idt_pointer: .word 20 * 16 - 1
    .quad idt
    .globl fault_table
fault_table:
    .quad fault_0,fault_1,fault_2,fault_3,fault_4,fault_5,fault_6,fault_7,fault_8,fault_9,fault_10
    .quad fault_11,fault_12,fault_13,fault_14,fault_15,fault_16,fault_17,fault_18,fault_19
    .globl program
    .align 16
program: .incbin "program.elf"
    .globl file_start, file_end
    .align 16
file_start: .incbin "file.bin"
file_end:
user_stack: .quad 0
    .section .bss
    .align 4096
pml4: .skip 4096
pdpt: .skip 4096
pds: .skip 4 * 4096
idt: .skip 320
    .align 16
    .skip 65536
boot_stack_top:
    .skip 65536
kernel_stack_top:
    .section .note.GNU-stack, "", @progbits
