#include "base/elf/die_reader.h"

#include "base/memory.h"

#include <dwarf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

/* Compilers number abbreviations from 1 on. An abbreviation with a larger code than this is decoded each time. */
#define TABLE_MAX 65536

struct attribute_form {
    unsigned name, form;
};

struct abbreviation {
    unsigned tag;
    bool has_children;
    bool is_wanted;     /* has attributes that struct passed_die tells */
    int64_t fixed_size; /* of all attributes together; -1: it depends on their values */
    size_t count;
    struct attribute_form attributes[];
};

static bool take_uleb(struct die_reader *reader, uint64_t *ret_number) {
    uint64_t number = 0;
    for (unsigned shift = 0; reader->at < reader->end; shift += 7) {
        uint8_t byte = *reader->at++;
        if (shift < 64) number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80) continue;
        *ret_number = number;
        return true;
    }
    return false;
}

/* The number in `size` bytes, at most 8, in the byte order of this machine. */
static uint64_t number_at(const uint8_t *at, size_t size) {
    uint64_t number = 0;
    memcpy(&number, at, size);
    return number;
}

/* The size of a value in this form, or -1 if it depends on the value. */
static int64_t fixed_size_of(const struct die_reader *reader, unsigned form) {
    switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const:
        return 0;
    case DW_FORM_data1:
    case DW_FORM_ref1:
    case DW_FORM_flag:
    case DW_FORM_strx1:
    case DW_FORM_addrx1:
        return 1;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2:
        return 2;
    case DW_FORM_strx3:
    case DW_FORM_addrx3:
        return 3;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
    case DW_FORM_ref_sup4:
        return 4;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8:
        return 8;
    case DW_FORM_data16:
        return 16;
    case DW_FORM_addr:
        return reader->address_size;
    case DW_FORM_ref_addr:
        return reader->version == 2 ? reader->address_size : reader->offset_size;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_strp_sup:
    case DW_FORM_sec_offset:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt:
        return reader->offset_size;
    default:
        return -1;
    }
}

static bool pass_bytes(struct die_reader *reader, uint64_t count) {
    if (count > (uint64_t)(reader->end - reader->at)) return false;
    reader->at += count;
    return true;
}

/* Passes a block whose length is a number of `size` bytes. */
static bool pass_block(struct die_reader *reader, size_t size) {
    const uint8_t *length = reader->at;
    return pass_bytes(reader, size) && pass_bytes(reader, number_at(length, size));
}

static bool pass_value(struct die_reader *reader, unsigned form) {
    int64_t size = fixed_size_of(reader, form);
    if (size >= 0) return pass_bytes(reader, (uint64_t)size);
    uint64_t number;
    switch (form) {
    case DW_FORM_sdata:
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index:
        return take_uleb(reader, &number);
    case DW_FORM_string: {
        const uint8_t *zero = memchr(reader->at, 0, (size_t)(reader->end - reader->at));
        return zero && pass_bytes(reader, (uint64_t)(zero + 1 - reader->at));
    }
    case DW_FORM_block1:
        return pass_block(reader, 1);
    case DW_FORM_block2:
        return pass_block(reader, 2);
    case DW_FORM_block4:
        return pass_block(reader, 4);
    case DW_FORM_block:
    case DW_FORM_exprloc:
        return take_uleb(reader, &number) && pass_bytes(reader, number);
    case DW_FORM_indirect:
        return take_uleb(reader, &number) && number != DW_FORM_indirect && number != DW_FORM_implicit_const &&
               pass_value(reader, (unsigned)number);
    default:
        return false;
    }
}

static bool is_wanted(unsigned name) {
    return name == DW_AT_low_pc || name == DW_AT_high_pc || name == DW_AT_ranges || name == DW_AT_sibling;
}

/* Decodes the abbreviation of `die`. NULL if there is none. */
static struct abbreviation *decode_abbreviation(const struct die_reader *reader, Dwarf_Die die) {
    int tag = dwarf_tag(&die); /* looks up die.abbrev */
    if (tag == DW_TAG_invalid || !die.abbrev) return NULL;
    size_t room = 16;
    struct abbreviation *abbreviation =
        memory_allocate(sizeof *abbreviation + room * sizeof abbreviation->attributes[0]);
    *abbreviation =
        (struct abbreviation){.tag = (unsigned)tag, .has_children = dwarf_abbrevhaschildren(die.abbrev) > 0};
    /* dwarf_getattrcnt counts wrong if there are implicit constants. So the attributes are read until there is no
     * more. */
    struct attribute_form attribute;
    while (
        dwarf_getabbrevattr(die.abbrev, abbreviation->count, &attribute.name, &attribute.form, NULL) == 0) {
        if (abbreviation->count == room) {
            room *= 2;
            abbreviation = memory_reallocate(
                abbreviation, sizeof *abbreviation + room * sizeof abbreviation->attributes[0]);
        }
        abbreviation->attributes[abbreviation->count++] = attribute;
        int64_t size = fixed_size_of(reader, attribute.form);
        abbreviation->is_wanted |= is_wanted(attribute.name);
        if (abbreviation->fixed_size >= 0)
            abbreviation->fixed_size = size < 0 ? -1 : abbreviation->fixed_size + size;
    }
    return abbreviation;
}

static struct abbreviation *find_abbreviation(struct die_reader *reader, uint64_t code, Dwarf_Die die) {
    if (code >= TABLE_MAX) {
        free(reader->rare);
        return reader->rare = decode_abbreviation(reader, die);
    }
    if (code >= reader->abbreviation_count) {
        uint64_t count = code + code / 2 + 64;
        reader->abbreviations =
            memory_reallocate(reader->abbreviations, count * sizeof *reader->abbreviations);
        memset(reader->abbreviations + reader->abbreviation_count, 0,
            (count - reader->abbreviation_count) * sizeof *reader->abbreviations);
        reader->abbreviation_count = count;
    }
    struct abbreviation **slot = &reader->abbreviations[code];
    if (!*slot) *slot = decode_abbreviation(reader, die);
    return *slot;
}

static void note(struct passed_die *die, const struct attribute_form *attribute, const uint8_t *value) {
    Dwarf_Attribute found = {attribute->name, attribute->form, (uint8_t *)value, die->die.cu};
    switch (attribute->name) {
    case DW_AT_low_pc:
        die->low_pc = found;
        break;
    case DW_AT_high_pc:
        die->high_pc = found;
        break;
    case DW_AT_sibling:
        die->sibling = found;
        break;
    case DW_AT_ranges:
        die->has_ranges = true;
        break;
    }
}

bool die_reader_next(struct die_reader *reader, struct passed_die *ret_die) {
    if (reader->at >= reader->end) return false;
    Dwarf_Die die = {.addr = (void *)reader->at, .cu = reader->unit.cu};
    uint64_t code;
    if (!take_uleb(reader, &code)) return false;
    *ret_die = (struct passed_die){.die = die};
    if (code == 0) return true;
    const struct abbreviation *abbreviation = find_abbreviation(reader, code, die);
    if (!abbreviation) return false;
    ret_die->tag = abbreviation->tag;
    ret_die->has_children = abbreviation->has_children;
    if (!abbreviation->is_wanted && abbreviation->fixed_size >= 0)
        return pass_bytes(reader, (uint64_t)abbreviation->fixed_size);
    for (size_t i = 0; i < abbreviation->count; i++) {
        const struct attribute_form *attribute = &abbreviation->attributes[i];
        const uint8_t *value = reader->at;
        if (!pass_value(reader, attribute->form)) return false;
        if (abbreviation->is_wanted) note(ret_die, attribute, value);
    }
    return true;
}

/* The address of the next sibling, or NULL if the DIE does not tell it. */
static const uint8_t *find_sibling(const struct die_reader *reader, const struct passed_die *die) {
    const Dwarf_Attribute *sibling = &die->sibling;
    if (sibling->form != DW_FORM_ref1 && sibling->form != DW_FORM_ref2 && sibling->form != DW_FORM_ref4 &&
        sibling->form != DW_FORM_ref8)
        return NULL;
    uint64_t offset = number_at(sibling->valp, (size_t)fixed_size_of(reader, sibling->form));
    if (offset >= (uint64_t)(reader->end - reader->start)) return NULL;
    const uint8_t *target = reader->start + offset;
    return target > reader->at ? target
                               : NULL; /* never backwards: reading a damaged unit must come to an end */
}

bool die_reader_pass_children(struct die_reader *reader, const struct passed_die *die) {
    if (!die->has_children) return true;
    const uint8_t *sibling = find_sibling(reader, die);
    if (sibling) {
        reader->at = sibling;
        return true;
    }
    struct passed_die child;
    for (size_t depth = 1; depth;) {
        if (!die_reader_next(reader, &child)) return false;
        if (!child.tag) {
            depth--;
        } else if (child.has_children) {
            sibling = find_sibling(reader, &child);
            if (sibling)
                reader->at = sibling;
            else
                depth++;
        }
    }
    return true;
}

void die_reader_go_to(struct die_reader *reader, const Dwarf_Die *die) {
    reader->at = die->addr;
}

/* The end of the section that contains `address`, or NULL. libdw does not tell it, and a damaged unit may claim
 * to be longer than its section. */
static const uint8_t *end_of_section(Dwarf *dwarf, const uint8_t *address) {
    Elf *elf = dwarf_getelf(dwarf);
    size_t names;
    if (elf_getshdrstrndx(elf, &names) != 0) return NULL;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        const char *name = gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;
        if (!name || !strstr(name, "debug_info")) continue; /* .debug_info, .zdebug_info, .debug_info.dwo */
        Elf_Data *data = elf_getdata(section, NULL);
        if (!data || !data->d_buf) continue;
        const uint8_t *start = data->d_buf;
        if (address >= start && address < start + data->d_size) return start + data->d_size;
    }
    return NULL;
}

bool die_reader_start(struct die_reader *reader, const Dwarf_Die *unit) {
    *reader = (struct die_reader){.unit = *unit};
    Dwarf_Die *die = &reader->unit;
    Dwarf_Off header = dwarf_dieoffset(die) - dwarf_cuoffset(die), next;
    Dwarf *dwarf = dwarf_cu_getdwarf(die->cu);
    size_t header_size;
    if (dwarf_cu_info(die->cu, &reader->version, NULL, NULL, NULL, NULL, &reader->address_size,
            &reader->offset_size) != 0 ||
        dwarf_next_unit(dwarf, header, &next, &header_size, NULL, NULL, NULL, NULL, NULL, NULL) != 0)
        return false;
    reader->at = die->addr;
    reader->start = reader->at - dwarf_cuoffset(die);
    const uint8_t *end = end_of_section(dwarf, reader->at);
    if (!end || next <= header) return false;
    reader->end = next - header < (uint64_t)(end - reader->start) ? reader->start + (next - header) : end;
    return true;
}

void die_reader_end(struct die_reader *reader) {
    for (uint64_t i = 0; i < reader->abbreviation_count; i++) free(reader->abbreviations[i]);
    free(reader->abbreviations);
    free(reader->rare);
    *reader = (struct die_reader){0};
}
